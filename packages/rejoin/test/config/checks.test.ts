import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { run } from '../support/fake-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'rejoin-checks-'))
const file = join(folder, 'file.pem')
writeFileSync(file, 'no key')
afterAll(() => rmSync(folder, { recursive: true }))

const secret = 'kY7ryw1QsbCOpzUe3vT9aLxgF0mDJnh4'

describe('settings that serve rejects are rejected by config in the same words', () => {
  test.each<[what: string, flags: string[], env: Record<string, string>, words: RegExp]>([
    ['a host that everybody reaches, without rules', ['--host', '0.0.0.0'], {}, /there are no access rules/],
    ['half a pair of TLS', ['--tls-cert', file], {}, /tls\.cert is set and tls\.key is not/],
    [
      'a key file that is missing',
      ['--tls-cert', file, '--tls-key', join(folder, 'none.pem')],
      {},
      /Cannot read tls\.key/,
    ],
    ['files that hold no certificate', ['--tls-cert', file, '--tls-key', file], {}, /cannot be used together/],
    ['a weak secret', [], { REJOIN_ACCESS_JWT: '[{"secret":"short"}]' }, /has 5 bytes/],
    [
      'a key set that is missing',
      [],
      { REJOIN_ACCESS_JWT: `[{"jwks":"${folder}/none.json","issuer":"i","audience":"a"}]` },
      /none\.json/,
    ],
    [
      'origins without rules',
      ['--cors-origin', 'https://shop.example'],
      {},
      /need access rules beside them.+ --access-anonymous-subscribe '\*'/,
    ],
    ['one port for two servers', ['--port', '4750', '--admin-port', '4750'], {}, /port and admin\.port are both 4750/],
    ['a folder for a log that has none', ['--log', 'memory', '--data', folder], {}, /Leave out --data/],
    ['a log in Redis by its name, without one', ['--log-prefix', 'a'], {}, /lmdb log has no use for --log-prefix/],
    ['replicas of a log that has none', ['--replicas', '2'], {}, /lmdb log has no use for --replicas/],
    [
      'a durability for memory',
      ['--log', 'memory', '--durability', 'disk'],
      {},
      /memory log has no use for --durability\. Leave it out/,
    ],
    ['ids that memory cannot keep apart', ['--log', 'memory', '--ids', 'snowflake'], {}, /needs a log that survives/],
    ['a pattern that is none', ['--log', 'memory', '--retain', 'a*b'], {}, /"a\*b" is no pattern/],
    ['a channel that is none', ['--log', 'memory', '--default-channel', 'a//b'], {}, /"a\/\/b" is no channel/],
    ['windows for what is no pattern', ['--log', 'memory'], { REJOIN_WINDOWS: '{"a*b":{"maxEvents":3}}' }, /"a\*b"/],
    ['a snapshot for what is no channel', [], { REJOIN_SNAPSHOTS: '{"a//b":{"url":"/state"}}' }, /"a\/\/b"/],
    [
      'a snapshot at what is no address',
      [],
      { REJOIN_SNAPSHOTS: '{"a/*":{"url":"nope"}}' },
      /url of snapshots\.a\/\* is "nope"\. Give an address that begins with/,
    ],
    ['a folder inside a file', ['--data', join(file, 'inside')], {}, /would be inside a file/],
    ['a file as the folder', ['--data', file], {}, /which is a file/],
    [
      'a durability of another log',
      ['--log', 'lmdb', '--durability', 'replicated'],
      {},
      /knows no durability replicated/,
    ],
  ])('%s', async (_what, flags, env, words) => {
    const served = await run(['serve', ...flags], { env })
    expect(served).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(words) })
    const configured = await run(['config', ...flags], { env })
    expect(configured).toMatchObject({ exitCode: 1, stderr: served.stderr })
    expect(configured.stdout).toMatch(/^port /m)
  })

  test('all reasons at once', async () => {
    const { stderr } = await run(['config', '--tls-cert', file, '--host', '0.0.0.0'])
    expect(stderr).toMatch(/2 settings are wrong\.\n\n {2}tls[^\n]+\n {2}Rejoin does not listen/)
  })
})

test.each(['300.1.1.1', '1.2.3', '1.2.3.4.5', '1.2.3.4.', 'nonsense'])(
  'both reject %s as the address of an interface',
  async (address) => {
    for (const command of ['serve', 'config']) {
      const { exitCode, stderr } = await run([command, '--mdns', '--mdns-interface', address])
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Give an IPv4 address of this machine.')])
    }
  },
)

test('good settings are good for both', async () => {
  const env = { REJOIN_ACCESS_JWT: JSON.stringify([{ secret }]) }
  expect(await run(['config', '--host', '0.0.0.0'], { env })).toMatchObject({ exitCode: 0, stderr: '' })
})

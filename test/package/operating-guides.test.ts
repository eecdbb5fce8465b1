import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serve } from 'rejoin'
import { describe, expect, onTestFinished, test } from 'vitest'
import { program, root } from '../support/paths.ts'
import { freePort } from '../support/proxies/proxy.ts'
import { readText } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { guideBlocks } from './guide-blocks.ts'

describe('two-hubs.md', () => {
  const [makeSecrets, serveOnTwo, serveOnOne, tryIt] = [
    'openssl',
    'rejoin serve',
    'systemctl enable',
    'token mint',
  ].map((text) => commandsOf('two-hubs.md', text)) as [string, string, string, string]

  test('hubs on two machines take the same token through a proxy, and reject a request without one', async () => {
    // An address that a proxy on another machine would use, where this machine has one.
    const [outside = '127.0.0.1'] = Object.values(networkInterfaces())
      .flat()
      .flatMap((found) => (found && !found.internal && found.family === 'IPv4' ? [found.address] : []))
    const ports = [await freePort(), await freePort()]
    const hubs = ports.map((port) =>
      serveOnTwo.replace(/^(rejoin serve .*?)--log \S+$/m, `$1--log memory --port ${port} > /dev/null & hubs+=($!)`),
    )
    const script = [
      makeSecrets,
      ...hubs,
      ...ports.map((port) => throughProxy(tryIt, `${outside}:${port}`)),
      // Again, as for a third hub: the secrets stay.
      makeSecrets,
      throughProxy(tryIt, `${outside}:${ports[0]}`),
    ].join('\n')
    expect(await pasted(script)).toEqual(['401', '201', '200', '401', '201', '200', '401', '201', '200'])
  })

  test('hubs on one machine are started by systemd, and take the same token through a proxy', async () => {
    const ports = [await freePort(), await freePort()]
    const [, start = ''] = /^ExecStart=\/usr\/bin\/(.*)$/m.exec(readText('deploy/systemd/rejoin@.service')) ?? []
    const { folder, remove } = temporaryFolder()
    onTestFinished(remove)
    mkdirSync(join(folder, 'etc/systemd/system'), { recursive: true })
    const systemd = `
      systemctl() {
        [ "$1" = enable ] || return 0
        for unit in "\${@:3}"; do
          [ -e /etc/systemd/system/rejoin@.service ] || return 1
          (set -a; . /etc/rejoin/rejoin.env; set +a; exec ${start.replace('%i', `"\${unit#rejoin@}"`)} --log memory > /dev/null) & hubs+=($!)
        done
      }`
    const script = [systemd, makeSecrets, serveOnOne]
      .join('\n')
      .replaceAll('/etc/', `${folder}/etc/`)
      .replaceAll('cp deploy/', `cp ${root}deploy/`)
      .replace('rejoin@4747 rejoin@4749', ports.map((port) => `rejoin@${port}`).join(' '))
    const tries = ports.map((port) => throughProxy(tryIt, `127.0.0.1:${port}`))
    expect(await pasted([script, ...tries].join('\n'))).toEqual(['401', '201', '200', '401', '201', '200'])
  })

  test('a deploy ends at a hub that does not get ready, says where to look, and leaves the other hub alone', async () => {
    const [port, other] = [await freePort(), await freePort()]
    const deploy = commandsOf('two-hubs.md', 'systemctl restart')
      .replace('4747 4749', `${port} ${other}`)
      .replace('--retry-max-time 60', '--retry-max-time 1')
    expect(deploy).toContain('--retry-max-time 1 ')
    expect(await pasted(`systemctl() { echo "$*"; }\n${deploy}`)).toEqual([
      `restart rejoin@${port}`,
      expect.stringContaining(`journalctl -u rejoin@${port}`),
    ])
  })

  test('a deploy with Compose leaves the other hub alone, too', async () => {
    const docker = `docker() { case "$*" in *" up "*) echo "\${@: -1}"; return 1 ;; esac; }`
    expect(await pasted(`${docker}\n${commandsOf('two-hubs.md', '--no-deps')}`)).toEqual(['hub1'])
  })
})

describe('production.md', () => {
  const page = readText('docs/guides/production.md')
  const rows = [...page.matchAll(/^\| ([^|]+) \| (`.*) \| .* \|$/gm)].map(([, check = '', cell = '']) => ({
    check,
    // A cell may have several commands: `one`, then `two`.
    command: [...cell.replaceAll('\\|', '|').matchAll(/`([^`]+)`/g)].map(([, code]) => code).join('\n'),
  }))

  test('every variable that a command reads is set at the top', () => {
    const set = new Set([...commandsOf('production.md', 'TOKEN=').matchAll(/^(\w+)=/gm)].map(([, name]) => name))
    const read = rows.flatMap(({ command }) => [...command.matchAll(/\$(\w+)/g)].map(([, name]) => name))
    expect(read.length).toBeGreaterThan(20)
    expect(read.filter((name) => !set.has(name))).toEqual([])
  })

  test.each([
    ['A stranger may not read.', /^401$/],
    ['A stranger may not publish.', /^401$/],
    ['A token reads what it should, and nothing else.', /good[\s\S]*may read +check\/\*/],
    ['Admin pages are not public.', /^404$/],
    ['Only your pages may use the hub.', /^40[13]$/],
    ['Publishes survive a crash.', /"durability"/],
    ['The window is as long as your readers are away.', /"limits"/],
    ['The balancer asks for readiness.', /"status":"ready"/],
    ['Your pages handle `sync-required`.', /./],
    ['Every hub is on the same log.', /"id":"(\w+)"[\s\S]*\1/],
    ['The new hub is ready.', /"status":"ready"[\s\S]*"status":"ready"/],
    ['Readers came back.', /^rejoin_connections 0$/],
    ['Readers missed nothing.', /"replayed"/],
    ['Publishes go through.', /"ok"/],
  ])('%s', async (check, good) => {
    const { url, adminUrl } = await servedWithRules()
    expect(await checked(check, { HUB: url, HUB_A: url, HUB_B: url, ADMIN: adminUrl })).toMatch(good)
  })

  test('a deploy shows the hub that is not ready, although the proxy asks the other one', async () => {
    const [ready, drained] = [await servedWithRules(), await servedWithRules()]
    await fetch(`${drained.adminUrl}/admin/drain`, { method: 'POST', body: '{"withinMs":0}' })
    const said = await checked('The new hub is ready.', { HUB: ready.url, HUB_A: ready.url, HUB_B: drained.url })
    expect(said).toContain('"status":"not-ready"')
  })

  /** What the command of a row prints, after the commands that set the variables, with addresses of this test. */
  async function checked(check: string, addresses: Readonly<Record<string, string | undefined>>): Promise<string> {
    const row = rows.find((found) => found.check === check)
    if (!row) throw new Error(`production.md has no row "${check}".`)
    const set = Object.entries(addresses).reduce(
      (text, [name, address]) => text.replace(new RegExp(`^${name}=\\S+`, 'm'), `${name}=${address}`),
      commandsOf('production.md', 'TOKEN='),
    )
    const lines = await pasted(`${set}\n${row.command}`, { REJOIN_ACCESS_JWT: JSON.stringify(rules) })
    return lines.join('\n')
  }
})

const rules = [{ secret: 'a secret of the tests, of 32 characters or more' }]

/** The program with access rules and an admin port. */
async function servedWithRules() {
  const { url, adminUrl, close } = await serve({ port: 0, access: { jwt: rules }, admin: { port: 0 } })
  onTestFinished(() => close({ withinMs: 0 }))
  return { url, adminUrl }
}

/** The one block of commands of a page that contains a text, as it is pasted. */
function commandsOf(page: string, text: string): string {
  const found = guideBlocks().filter(
    (block) => block.page === page && block.language === 'sh' && block.code.includes(text),
  )
  if (found.length !== 1) throw new Error(`${found.length} blocks of commands in ${page} have ${text}.`)
  return found[0]?.code as string
}

/** Commands for hub.example that reach a hub as through a proxy, when it is ready; they print the status alone, that of a stranger first. */
function throughProxy(commands: string, address: string): string {
  const [, port] = address.split(':')
  const curl = `curl -s -o /dev/null -w '%{http_code}\\n' --connect-to hub.example:80:${address}`
  return `curl -s -o /dev/null --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:${port}/readyz
    ${curl} -m 2 http://hub.example/events/demo
    ${commands.replaceAll(/^curl /gm, `${curl} `).replaceAll(' -N ', ' -N -m 2 ')}`
}

/** The lines that commands print in a folder of their own. The hubs that they start are in the array `hubs`, and end with them. */
async function pasted(commands: string, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'rejoin'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 })
  const script = `hubs=()
    trap 'kill -9 "\${hubs[@]}" 2> /dev/null; wait' EXIT
    ${commands}
    true`
  const { PATH = '' } = process.env
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    env: { PATH: `${bin}:${PATH}`, ...env },
    cwd: folder,
  })
  return stdout.trim().split('\n')
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Given, loadConfig } from '../../src/config/load.ts'
import { hasFlag, settings } from '../../src/config/settings.ts'
import { run as runIn } from '../support/fake-process.ts'

describe('the value of a setting comes from', () => {
  test('a flag before the environment, the environment before the file, and the file before the default', async () => {
    const file = configFile({ port: 1, host: 'file', log: 'memory', limits: { maxPerIp: 1 } })
    const { config, values } = await load({
      flags: { port: '3' },
      env: { REJOIN_PORT: '2', REJOIN_HOST: 'environment' },
      file,
    })
    expect(config).toMatchObject({ port: 3, host: 'environment', log: 'memory', limits: { maxPerIp: 1 } })
    const origins = Object.fromEntries(values.map(({ setting, origin }) => [setting.key, origin]))
    expect(origins).toMatchObject({ port: '--port', host: 'REJOIN_HOST', log: file, drainMs: 'default' })
  })

  test('the file that REJOIN_CONFIG names, unless a flag names another', async () => {
    const env = { REJOIN_CONFIG: configFile({ port: 1 }) }
    expect((await load({ env })).config.port).toBe(1)
    expect((await load({ env, file: configFile({ port: 2 }) })).config.port).toBe(2)
  })

  test('a variable that is set to nothing says nothing', async () => {
    expect((await load({ env: { REJOIN_PORT: '' } })).config.port).toBe(4747)
  })

  test('a variable says yes and no by words and by digits', async () => {
    expect((await load({ env: { REJOIN_INSECURE: '1', REJOIN_TLS_HTTP2: 'false' } })).config).toMatchObject({
      insecure: true,
      tls: { http2: false },
    })
  })

  test('a reader may have a budget of more than 2 GiB', async () => {
    const fourGiB = 4 * 1024 ** 3
    expect((await load({ flags: { 'sink-budget-bytes': String(fourGiB) } })).config.sinkBudgetBytes).toBe(fourGiB)
  })

  test('what a channel keeps depends on the log it is kept in', async () => {
    expect((await load()).config.window.maxEvents).toBe(10_000)
    expect((await load({ flags: { log: 'memory' } })).config.window.maxEvents).toBe(1000)
    expect((await load({ flags: { log: 'redis://localhost' } })).config.window.maxAgeMs).toBe(3_600_000)
    expect((await load({ flags: { log: 'memory', 'window-max-events': '7' } })).config.window.maxEvents).toBe(7)
  })
})

describe('a wrong setting is named, with the value that was found and the values that are allowed', () => {
  test('in a file', async () => {
    const file = configFile({
      port: 70_000,
      host: '',
      log: 'redis',
      insecure: 'yes',
      retryMs: 'soon',
      window: { maxEvents: 1.5, maxAge: 1000 },
      limits: { maxConnections: 'many', maxPerIp: 0 },
      tls: 'cert.pem',
      prot: 80,
    })
    expect(await complaint({ file })).toMatchInlineSnapshot(`
      "11 settings are wrong.

        "port" in rejoin.config.json is 70000. Give a whole number from 0 to 65535.
        "host" in rejoin.config.json is "". Give a name or an address of this machine.
        "insecure" in rejoin.config.json is "yes". Give true or false.
        "log" in rejoin.config.json is "redis". Give lmdb, memory, or the address of a Redis, such as redis://localhost:6379.
        "window.maxEvents" in rejoin.config.json is 1.5. Give a whole number of at least 1.
        "window.maxAge" in rejoin.config.json is not a setting. Did you mean "window.maxAgeMs"?
        "retryMs" in rejoin.config.json is "soon". Give a whole number from 500 to 60000, or "adaptive".
        "limits.maxConnections" in rejoin.config.json is "many". Give a whole number of at least 1.
        "limits.maxPerIp" in rejoin.config.json is 0. Give a whole number of at least 1.
        "tls" in rejoin.config.json is "cert.pem". Give an object.
        "prot" in rejoin.config.json is not a setting. Did you mean "port"?"
    `)
  })

  test('in flags and variables', async () => {
    const given = {
      flags: { port: '80x', log: 'sqlite', 'retry-ms': '1' },
      env: { REJOIN_DRAIN_MS: '-1', REJOIN_INSECURE: 'si', REJOIN_LIMITS_MAX_BODY_BYTES: '300000' },
    }
    expect(await complaint(given)).toMatchInlineSnapshot(`
      "6 settings are wrong.

        --port is "80x". Give a whole number from 0 to 65535.
        REJOIN_INSECURE is "si". Give true or false.
        REJOIN_DRAIN_MS is "-1". Give a whole number from 0 to 600000.
        --log is "sqlite". Give lmdb, memory, or the address of a Redis, such as redis://localhost:6379.
        --retry-ms is 1. Give a whole number from 500 to 60000, or "adaptive".
        REJOIN_LIMITS_MAX_BODY_BYTES is 300000. Give a whole number from 1 to 262144."
    `)
  })

  test.each([
    [{ 'trust-proxy': true }, 'Did you mean "trustProxy"?'],
    [{ limits: { maxPerIP: 20 } }, 'Did you mean "limits.maxPerIp"?'],
    [{ maxPerIp: 20 }, 'Did you mean {"limits": {"maxPerIp": …}}?'],
    [{ 'limits.maxPerIp': 20 }, 'Did you mean {"limits": {"maxPerIp": …}}?'],
    [{ 'cors-origin': ['https://a.example'] }, 'Did you mean {"access": {"cors": …}}?'],
    [{ limits: { trustProxy: true } }, 'Did you mean {"trustProxy": …}?'],
    [{ tls: { certificate: 'cert.pem' } }, 'In "tls" there are cert, http2, key.'],
    [{ colour: 'red' }, 'There are access, admin, '],
  ])('in a name that is misspelt, or outside of its group: %j', async (content, advice) => {
    expect(await complaint({ file: configFile(content) })).toContain(` is not a setting. ${advice}`)
  })

  test('in JSON of a variable', async () => {
    const texts = ['{"prices/*": {"maxEvents": 10}', "{'prices/*': 1}", '{"a": 1,}', '"news"', 'news']
    const complaints = await Promise.all(texts.map((text) => complaint({ env: { REJOIN_WINDOWS: text } })))
    expect(complaints.join('\n')).toMatchInlineSnapshot(`
      "REJOIN_WINDOWS is not JSON: a closing brace is missing at line 1, column 31. Give windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}.
      REJOIN_WINDOWS is not JSON: a word without double quotes at line 1, column 2. Give windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}.
      REJOIN_WINDOWS is not JSON: a name in double quotes is missing at line 1, column 9. Give windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}.
      REJOIN_WINDOWS is "news". Give windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}.
      REJOIN_WINDOWS is not JSON: a word without double quotes at line 1, column 1. Give windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}."
    `)
  })

  test('of a Service of Kubernetes that is called like the program, with what to change', async () => {
    expect(await complaint({ env: { REJOIN_PORT: 'tcp://10.96.12.7:80' } })).toBe(
      'REJOIN_PORT is "tcp://10.96.12.7:80". Give a whole number from 0 to 65535. Kubernetes sets this variable in each pod of a ' +
        'namespace with a Service named rejoin. Set enableServiceLinks: false in the spec of the pod, or rename the Service.',
    )
  })

  test('in the settings of a channel', async () => {
    const file = configFile({
      windows: { 'prices/*': { maxEvents: 0, maxAge: 1 }, news: 5 },
      retries: { 'prices/*': 100, news: 'soon', old: 70_000, half: 600.5 },
    })
    expect(await complaint({ file })).toMatchInlineSnapshot(`
      "7 settings are wrong.

        "windows.prices/*.maxEvents" in rejoin.config.json is 0. Give at least 1.
        "windows.prices/*.maxAge" in rejoin.config.json is not a setting. Leave it out.
        "windows.news" in rejoin.config.json is 5. Give an object.
        "retries.prices/*" in rejoin.config.json is 100. Give at least 500.
        "retries.news" in rejoin.config.json is "soon". Give "adaptive" or a number.
        "retries.old" in rejoin.config.json is 70000. Give at most 60000.
        "retries.half" in rejoin.config.json is 600.5. Give a whole number."
    `)
  })

  test('in a list where names belong', async () => {
    expect(await complaint({ file: configFile({ limits: [1], tls: 'cert.pem' }) })).toMatchInlineSnapshot(`
      "2 settings are wrong.

        "limits" in rejoin.config.json is [1]. Give an object.
        "tls" in rejoin.config.json is "cert.pem". Give an object."
    `)
  })

  test('in a file that is something else', async () => {
    const complaints = await Promise.all(
      ['[]', '"port"', 'null', '{', '{ "port": 80,\n "host": localhost }', '{\n  "port": 80,\n}', ''].map((text) =>
        complaint({ file: writtenFile(text) }),
      ),
    )
    expect(complaints.join('\n')).toMatchInlineSnapshot(`
      "rejoin.config.json holds no object. Write settings as {"port": 4747}.
      rejoin.config.json holds no object. Write settings as {"port": 4747}.
      rejoin.config.json holds no object. Write settings as {"port": 4747}.
      rejoin.config.json is not JSON: a closing brace is missing at line 1, column 2.
      rejoin.config.json is not JSON: a word without double quotes at line 2, column 9.
      rejoin.config.json is not JSON: a name in double quotes is missing at line 2, column 14.
      rejoin.config.json is not JSON: a value is missing at line 1, column 1."
    `)
  })

  test('a value that is very long is not repeated as a whole', async () => {
    expect((await complaint({ flags: { port: 'x'.repeat(1000) } })).length).toBeLessThan(200)
  })
})

describe('rejoin config', () => {
  test('prints the value of each setting and where it comes from', async () => {
    const file = configFile({ limits: { maxPerIp: 20 } })
    const { stdout, exitCode } = await run(['config', '--config', file, '--port', '80'], { REJOIN_HOST: '::1' })
    expect(exitCode).toBe(0)
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/))
    expect(rows).toContainEqual(['port', '80', '--port'])
    expect(rows).toContainEqual(['host', '::1', 'REJOIN_HOST'])
    expect(rows).toContainEqual(['limits.maxPerIp', '20', file])
    expect(rows).toContainEqual(['limits.maxConnections', '(no limit)', 'default'])
    expect(rows.filter((row) => row.length === 3)).toHaveLength(settings.length)
  })

  test('prints JSON lines when that is asked for, and no secret', async () => {
    const { stdout } = await run(['config', '--json', '--port', '80'], { REJOIN_ADMIN_TOKEN: 'not-to-be-shown-here' })
    const rows = stdout.split('\n').filter(Boolean)
    expect(rows).toHaveLength(settings.length)
    expect(rows).toContain('{"key":"port","value":80,"origin":"--port"}')
    expect(rows).toContain('{"key":"admin.token","set":true,"origin":"REJOIN_ADMIN_TOKEN"}')
    expect(rows).toContain('{"key":"limits.maxConnections","value":null,"origin":"default"}')
    expect(stdout).not.toContain('not-to-be-shown')
  })

  test('names variables that look like ours and are not', async () => {
    const { stdout } = await run(['config'], { REJOIN_PROT: '80' })
    expect(stdout).toContain('REJOIN_PROT is set, and is not a setting: it is not read. Did you mean REJOIN_PORT?\n')
  })

  test('complains like serve does', async () => {
    const { stderr, exitCode } = await run(['config', '--port', 'x'])
    expect(stderr).toBe('rejoin: --port is "x". Give a whole number from 0 to 65535.\n')
    expect(exitCode).toBe(1)
  })
})

describe('secrets', () => {
  const secret = 'correct horse battery staple, many times over'

  test('are taken from the environment and from the file', async () => {
    const env = { REJOIN_ADMIN_TOKEN: 'x'.repeat(32), REJOIN_ACCESS_JWT: JSON.stringify([{ secret }]) }
    expect((await load({ env })).config).toMatchObject({
      admin: { token: 'x'.repeat(32) },
      access: { jwt: [{ secret }] },
    })
    const file = configFile({ access: { jwt: [{ secret, audience: 'shop' }] } })
    expect((await load({ file })).config.access.jwt).toEqual([{ secret, audience: 'shop' }])
  })

  test('an address of Redis is shown without its password, right or wrong', async () => {
    const password = 'Zx9vQ2mLr7TnKc4W'
    const addresses = [`redis://me:${password}@h:6380/2`, `rediss://h:6380/2?password=${password}`]
    for (const address of addresses) {
      const { stdout } = await run(['config'], { REJOIN_LOG: address })
      expect(stdout).toMatch(/^log +rediss?:\/\/h:6380\/2 /m)
      const { stdout: lines } = await run(['config', '--json'], { REJOIN_LOG: address })
      expect(lines).toMatch(/^\{"key":"log","value":"rediss?:\/\/h:6380\/2","origin":"REJOIN_LOG"\}$/m)
      expect(stdout + lines).not.toContain(password)
    }
    for (const wrong of [
      `redi://me:${password}@h`,
      `redis://me:${password}@h:port`,
      `me:${password}@h`,
      `?${password}`,
    ]) {
      const { stderr, exitCode } = await run(['config'], { REJOIN_LOG: wrong })
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('REJOIN_LOG is')])
      expect(stderr).not.toContain(password)
    }
  })

  test('are not printed, only that they are set', async () => {
    const { stdout } = await run(['config'], { REJOIN_ACCESS_JWT: JSON.stringify([{ secret }]) })
    expect(stdout).toMatch(/^access\.jwt +set +REJOIN_ACCESS_JWT$/m)
    expect(stdout).not.toContain('horse')
  })

  test('are not repeated when they are wrong, nor what stands beside them', async () => {
    const complaints = await Promise.all([
      complaint({ env: { REJOIN_ADMIN_TOKEN: 'horse' } }),
      complaint({ env: { REJOIN_ACCESS_JWT: `[{"secret": "${secret}"` } }),
      complaint({ env: { REJOIN_ACCESS_JWT: JSON.stringify([{ secret, algorithms: ['none'], horse: 'x' }]) } }),
      complaint({ file: configFile({ access: { jwt: { secret } } }) }),
      complaint({ file: configFile({ access: { jwt: [{ secret: [secret] }, { jwks: 1 }], keys: [{ name: 'a' }] } }) }),
      complaint({ file: configFile({ admin: { token: ['horse'], horses: 'horse' } }) }),
      complaint({ file: writtenFile(`{ "admin": { "token": "horse" }, "access": horse }`) }),
      // In the place of the whole group, or as it is where its hash belongs.
      complaint({ file: configFile({ admin: secret, access: [{ secret }] }) }),
      complaint({ file: configFile({ access: secret }) }),
      complaint({ file: configFile({ access: { keys: [secret, { name: 'a', sha256: [secret] }] } }) }),
      complaint({ file: configFile({ access: { keys: [{ name: 'a', sha256: secret }] } }) }),
      complaint({ env: { REJOIN_ACCESS_KEYS: secret } }),
    ])
    expect(complaints.join('\n')).not.toContain(secret)
    expect(complaints.join('\n')).toMatchInlineSnapshot(`
      "REJOIN_ADMIN_TOKEN is wrong, and not shown because it is secret. Give at least 16 characters, none of them a space.
      REJOIN_ACCESS_JWT is not JSON: a closing brace is missing at line 1, column 60. Give a list of rules, such as [{"secret": "…"}].
      2 settings are wrong.

        "0.algorithms.0" in REJOIN_ACCESS_JWT is wrong, and not shown because it is secret. Give "HS256" or "HS384" or "HS512" or "RS256" or "RS384" or "RS512" or "PS256" or "PS384" or "PS512" or "ES256" or "ES384" or "ES512" or "EdDSA".
        "0.horse" in REJOIN_ACCESS_JWT is not a setting. Leave it out.
      "access.jwt" in rejoin.config.json is wrong, and not shown because it is secret. Give a list of rules, such as [{"secret": "…"}].
      3 settings are wrong.

        "access.jwt.0.secret" in rejoin.config.json is wrong, and not shown because it is secret. Give a text.
        "access.jwt.1.jwks" in rejoin.config.json is wrong, and not shown because it is secret. Give a text.
        "access.keys.0.sha256" in rejoin.config.json is missing.
      2 settings are wrong.

        "admin.token" in rejoin.config.json is wrong, and not shown because it is secret. Give at least 16 characters, none of them a space.
        "admin.horses" in rejoin.config.json is not a setting. In "admin" there are port, token.
      rejoin.config.json is not JSON: a word without double quotes at line 1, column 43.
      2 settings are wrong.

        "access" in rejoin.config.json is wrong, and not shown because it is secret. Give an object.
        "admin" in rejoin.config.json is wrong, and not shown because it is secret. Give an object.
      "access" in rejoin.config.json is wrong, and not shown because it is secret. Give an object.
      2 settings are wrong.

        "access.keys.0" in rejoin.config.json is "not shown, because it may hold a key". Give an object.
        "access.keys.1.sha256" in rejoin.config.json is "not shown, because it may hold a key". Give a text.
      "access.keys.0.sha256" in rejoin.config.json is "not shown, because it may hold a key". Give its SHA-256 of 64 hex digits: printf %s "$KEY" | sha256sum.
      REJOIN_ACCESS_KEYS is not JSON: a word without double quotes at line 1, column 1. Give a list of keys, such as [{"name": "shop", "sha256": "…", "publish": ["orders/*"]}]."
    `)
  })
})

test('a secret has no flag, which would show it to everybody on the machine', () => {
  expect(settings.filter(({ secret }) => secret).filter(hasFlag)).toEqual([])
})

function load({ flags = {}, env = {}, file }: Partial<Given> = {}) {
  return loadConfig({ flags, env, file })
}

async function complaint(given: Partial<Given>): Promise<string> {
  const error = await load(given).then(
    () => expect.fail('It was taken as it is.'),
    (error: Error) => error,
  )
  return given.file === undefined ? error.message : error.message.replaceAll(given.file, 'rejoin.config.json')
}

function configFile(content: unknown): string {
  return writtenFile(JSON.stringify(content))
}

function writtenFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'rejoin.config.json')
  writeFileSync(file, text)
  return file
}

async function run(args: string[], env: Record<string, string> = {}) {
  return runIn(args, { env })
}

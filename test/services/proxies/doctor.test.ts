import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from 'rejoin'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../../support/certificate.ts'
import { program } from '../../support/paths.ts'
import { type ProxyKindName, proxyKindNames, proxyKinds } from '../../support/proxies/kinds.ts'
import { shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { type Planted, planted } from './planted.ts'

const page = 'http://127.0.0.1:3000'
const closing: (() => Promise<void>)[] = []
let examined: Readonly<Record<string, Examined>> = {}

interface Examined {
  readonly exitCode: number
  readonly faults: readonly string[]
  readonly hints: readonly string[]
  readonly culprits: readonly string[]
}

// All at once: each takes the six seconds of silence that the doctor listens to.
beforeAll(async () => {
  const shipped = proxyKindNames.map((proxy) => [proxy, { proxy, configuration: shippedConfiguration(proxy) }] as const)
  const all: (readonly [string, Planted])[] = [...Object.entries(planted), ...shipped, ['plain HAProxy', plainHaproxy]]
  const results = await Promise.all(all.map(async ([name, each]) => [name, await examine(each)] as const))
  examined = Object.fromEntries(results)
}, 120_000)

afterAll(async () => {
  await Promise.all(closing.map((close) => close()))
})

describe('rejoin doctor names the fault, and no other', () => {
  test.each(Object.keys(planted))('%s', (fault) => {
    expect(examined[fault]).toMatchObject({ exitCode: 1, faults: [fault], hints: [] })
  })

  test('and the program that makes it, where the program shows itself', () => {
    expect(examined.compression?.culprits).toEqual([expect.stringMatching(/nginx\/\d/)])
    expect(examined.caching?.culprits).toEqual([expect.stringMatching(/varnish/i)])
    expect(examined.silence?.culprits).toEqual(['a proxy between you and the hub'])
  })
})

describe('rejoin doctor finds no fault behind the configuration that we ship for', () => {
  test.each(proxyKindNames)('%s', (proxy) => {
    expect(examined[proxy]).toMatchObject({ exitCode: 0, faults: [], hints: knownHints[proxy] ?? [] })
  })
})

test('rejoin doctor hints at what HAProxy does to streams when it is told nothing', () => {
  expect(examined['plain HAProxy']).toMatchObject({ exitCode: 0, faults: [], hints: ['stream', 'disconnect'] })
})

test('rejoin doctor finds no fault over TLS, and says that browsers get HTTP/2', async () => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const made = makeCertificate('localhost')
  writeFileSync(tls.cert, made?.cert ?? '')
  writeFileSync(tls.key, made?.key ?? '')
  const hub = await serve({ port: 0, tls })
  onTestFinished(() => hub.close({ withinMs: 0 }))
  const address = hub.url.replace('127.0.0.1', 'localhost')
  const { stdout, exitCode } = await doctor([address, '--json'], { NODE_EXTRA_CA_CERTS: tls.cert })
  const { checks } = JSON.parse(stdout) as DoctorReport
  expect([exitCode, checks.filter(({ state }) => state === 'fault' || state === 'hint')]).toEqual([0, []])
  expect(checks.find(({ name }) => name === 'http-version')?.summary).toContain('HTTP/2')
})

const plainHaproxy: Planted = { proxy: 'haproxy', configuration: proxyKinds.haproxy.plain }

/** Apache looks at its client only when it writes to it, and no setting changes that. */
const knownHints: Partial<Record<ProxyKindName, readonly string[]>> = { apache: ['disconnect'] }

async function examine({ proxy, configuration }: Planted): Promise<Examined> {
  const hub = await serve({ port: 0 })
  closing.push(() => hub.close())
  const front = await startProxy(proxy, Number(new URL(hub.url).port), configuration)
  closing.push(() => front.stop())
  const { stdout, exitCode } = await doctor([front.url, '--origin', page, '--json'])
  const { checks } = JSON.parse(stdout) as DoctorReport
  const named = (state: string) => checks.filter((check) => check.state === state).map(({ name }) => name)
  const culprits = checks.filter(({ state }) => state === 'fault').map(({ remedy }) => remedy?.culprit ?? '')
  return { exitCode, faults: named('fault'), hints: named('hint'), culprits }
}

interface DoctorReport {
  readonly checks: readonly {
    readonly name: string
    readonly state: string
    readonly summary: string
    readonly remedy?: { readonly culprit: string }
  }[]
}

function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ stdout: string; exitCode: number }> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [program, 'doctor', ...args],
      { env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : Number(error.code)
        if (stdout === '') reject(new Error(`rejoin doctor ended with ${exitCode}: ${stderr}`))
        else resolve({ stdout, exitCode })
      },
    )
  })
}

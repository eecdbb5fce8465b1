import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type OutputChunk, rolldown } from 'rolldown'
import { beforeAll, describe, expect, test } from 'vitest'
import { root } from '../support/paths.ts'
import { readJson, readText } from '../support/repository.ts'

/**
 * What a page has to load, minified and compressed, with all that it brings along. Measured on what is published.
 *
 * `core` is `@rejoin/client` without what it loads only when it is asked for; `all` is that with every part, and the publisher.
 * `extras` are what `shareAcrossTabs`, `reports`, `schemas`, and an answer that is not a plain stream add to that. About 0.4 KB of them
 * are for a leading tab that hangs, and for redirects.
 */
const limits = { core: 6.5 * 1024, all: 10 * 1024, extras: 3 * 1024 }

/** Entries that a page loads for themselves, each with a limit of its own. */
const apart: Record<string, number> = { './event-source': 4 * 1024, './standalone': 11.5 * 1024 }

/**
 * Bindings, which bring the core along: what a page that has the core loads beside it, without the framework. The element
 * renders by itself. About 1.2 KB of each keep users apart, and let components that return catch up on one connection. React
 * and Vue have 0.25 KB more: a component can stay while the user changes, so they also watch the tokens of functions.
 */
const bindings: Record<string, number> = {
  './react': 4.25 * 1024,
  './vue': 4.25 * 1024,
  './redux': 3.25 * 1024,
  './element': 4.25 * 1024,
}

/** For tests, which no page loads. */
const unloaded = ['./testing']

const folder = `${root}packages/client/`
const { exports } = readJson<{ exports: Record<string, { default: string }> }>('packages/client/package.json')
const fileOf = (entry: string) => folder + exports[entry]!.default
const entries = Object.keys(exports)
  .filter(
    (entry) => !(entry in apart) && !(entry in bindings) && !unloaded.includes(entry) && !/\.(?:json|css)$/.test(entry),
  )
  .map(fileOf)

/** Parts that are loaded when they are asked for. */
const parts = /transports\/(event-source|long-poll|fallbacks)|optional/
const extras = /transports\/shared|reconnect-reports|schema-check|rejection/
const loadedLater = new RegExp(`${parts.source}|${extras.source}`)

let core: OutputChunk
let all: OutputChunk

beforeAll(async () => {
  core = await bundle(entries.slice(0, 1), loadedLater)
  all = await bundle(entries, extras)
})

describe('the client', () => {
  test(`is at most ${limits.core} bytes for a page that only connects`, () =>
    expect(bytesOf(core)).toBeLessThanOrEqual(limits.core))

  test(`is at most ${limits.all} bytes with everything`, () => expect(bytesOf(all)).toBeLessThanOrEqual(limits.all))

  test(`is at most ${limits.extras} bytes larger with tabs that share, reports of reconnects, a publisher that checks and the words of a rejection`, async () =>
    expect(bytesOf(await bundle(entries)) - bytesOf(all)).toBeLessThanOrEqual(limits.extras))

  test.each(Object.entries(apart))('%s is at most %i bytes, with all that it needs', async (entry, limit) =>
    expect(bytesOf(await bundle([fileOf(entry)]))).toBeLessThanOrEqual(limit),
  )

  test.each(Object.entries(bindings))('%s adds at most %i bytes to the core', async (entry, limit) => {
    const frameworks = new RegExp(`${loadedLater.source}|^(?:react|vue)$`)
    const withCore = await bundle([entries[0]!, fileOf(entry)], frameworks)
    expect(bytesOf(withCore) - bytesOf(core)).toBeLessThanOrEqual(limit)
  })

  test('is made of its own files and those of the protocol, and of no other', () => {
    const files = all.moduleIds.filter((id) => id.startsWith(root)).map((id) => id.slice(root.length))
    expect(files.filter((file) => !/^packages\/(?:client|protocol)\/dist\//.test(file))).toEqual([])
    expect(files.map((file) => file.replace('packages/', '').replace('/dist', '')).sort()).toMatchInlineSnapshot(`
      [
        "client/address.js",
        "client/backoff.js",
        "client/clock.js",
        "client/connection-limits.js",
        "client/connection.js",
        "client/credentials.js",
        "client/handler-set.js",
        "client/handlers.js",
        "client/iteration.js",
        "client/optional.js",
        "client/persistence.js",
        "client/preparation.js",
        "client/publisher/publisher.js",
        "client/receiver.js",
        "client/recent-ids.js",
        "client/request.js",
        "client/retry-after.js",
        "client/stream.js",
        "client/transports/block-reader.js",
        "client/transports/body.js",
        "client/transports/event-source.js",
        "client/transports/fallbacks.js",
        "client/transports/fetch.js",
        "client/transports/long-poll.js",
        "client/transports/poll-answer.js",
        "client/wake.js",
        "protocol/errors.js",
        "protocol/index.js",
        "protocol/names.js",
      ]
    `)
  })

  test('loads optional parts only when a page uses them', () => {
    expect(core.moduleIds.filter((id) => loadedLater.test(id))).toEqual([])
    expect(all.moduleIds.filter((id) => parts.test(id))).toHaveLength(4)
  })
})

test('the guide for pages without a bundler says what they load, within 5 %', () => {
  const guide = readText('docs/guides/without-a-bundler.md')
  const figures = (words: RegExp) => words.exec(guide)?.slice(1).map(Number) ?? []
  const isClose = (said: number | undefined, bytes: number) =>
    expect(Math.abs((said ?? 0) * 1000 - bytes) / bytes, `${said} KB are ${bytes} bytes`).toBeLessThan(0.05)
  const [fileKb, fileWireKb] = figures(/The file is ([\d.]+) KB, ([\d.]+) KB on the wire/)
  const file = readFileSync(fileOf('./standalone'))
  isClose(fileKb, file.length)
  isClose(fileWireKb, gzipSync(file, { level: 9 }).length)
  const [count = 0, modulesKb, modulesWireKb] = figures(/(\d+) small files of (\d+) KB, which are (\d+) KB on the wire/)
  const modules = [...modulesFrom(fileOf('.'))].map((path) => readFileSync(path))
  expect(Math.abs(count - modules.length) / modules.length, `${modules.length} files`).toBeLessThan(0.05)
  isClose(
    modulesKb,
    modules.reduce((sum, { length }) => sum + length, 0),
  )
  isClose(
    modulesWireKb,
    modules.reduce((sum, code) => sum + gzipSync(code, { level: 9 }).length, 0),
  )
})

/** A module and all that it imports before it runs. */
function modulesFrom(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  const imports = readFileSync(path, 'utf8').matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)
  for (const [, name = ''] of imports) {
    const isProtocol = name === '@rejoin/protocol'
    modulesFrom(isProtocol ? `${root}packages/protocol/dist/index.js` : join(dirname(path), name), found)
  }
  return found
}

/** All of it in one file, so that no byte is counted twice. */
async function bundle(files: string[], external?: RegExp): Promise<OutputChunk> {
  const whole = 'whole'
  const build = await rolldown({
    input: whole,
    platform: 'browser',
    ...(external ? { external } : {}),
    plugins: [
      {
        name: whole,
        resolveId: (id) => (id === whole ? id : null),
        load: (id) => (id === whole ? files.map((file) => `export * from '${file}'`).join('\n') : null),
      },
    ],
  })
  const { output } = await build.generate({ minify: true, codeSplitting: false })
  return output[0]
}

/** Left out are a bundler's notes to itself, and the way from this folder to a part: a page has its parts side by side. */
function bytesOf({ code }: OutputChunk): number {
  const shipped = code.replaceAll(/\/\*[^*]*\*\/ ?/g, '').replaceAll('./packages/client/dist/', './')
  return gzipSync(shipped, { level: 9 }).length
}

import { gzipSync } from 'node:zlib'
import { type OutputChunk, rolldown } from 'rolldown'
import { beforeAll, describe, expect, test } from 'vitest'
import { readJson, root } from './repository.ts'

/**
 * What a page has to load, minified and compressed, with all that it brings along. Measured on what is published.
 *
 * `core` is `@rejoin/client` without what it loads only when it is asked for; `all` is every entry and every part.
 */
const limits = { core: 6.5 * 1024, all: 10 * 1024 }

const folder = `${root}packages/client/`
const { exports } = readJson<{ exports: Record<string, { default: string }> }>('packages/client/package.json')
const entries = Object.values(exports).map((entry) => folder + entry.default)

/** Parts that are loaded when they are asked for. */
const parts = /(event-source|long-poll)-transport|persistence|reconnect-reports/

let core: OutputChunk
let all: OutputChunk

beforeAll(async () => {
  core = await bundle(entries.slice(0, 1), parts)
  all = await bundle(entries)
})

describe('the client', () => {
  test(`is at most ${limits.core} bytes for who only connects`, () =>
    expect(bytesOf(core)).toBeLessThanOrEqual(limits.core))

  test(`is at most ${limits.all} bytes with everything`, () => expect(bytesOf(all)).toBeLessThanOrEqual(limits.all))

  test('is made of its own files and those of the protocol, and of no other', () => {
    const files = all.moduleIds.filter((id) => id.startsWith(root)).map((id) => id.slice(root.length))
    expect(files.filter((file) => !/^packages\/(?:client|protocol)\/dist\//.test(file))).toEqual([])
    expect(files.map((file) => file.replace('packages/', '').replace('/dist', '')).sort()).toMatchInlineSnapshot(`
      [
        "client/address.js",
        "client/backoff.js",
        "client/block-reader.js",
        "client/body.js",
        "client/clock.js",
        "client/connection.js",
        "client/event-source-transport.js",
        "client/fetch-transport.js",
        "client/handler-set.js",
        "client/handlers.js",
        "client/invalid-option.js",
        "client/iteration.js",
        "client/long-poll-transport.js",
        "client/persistence.js",
        "client/poll-answer.js",
        "client/publisher/publisher.js",
        "client/receiver.js",
        "client/recent-ids.js",
        "client/reconnect-reports.js",
        "client/report.js",
        "client/request.js",
        "client/retry-after.js",
        "client/stream.js",
        "client/wake.js",
        "protocol/errors.js",
        "protocol/index.js",
        "protocol/names.js",
      ]
    `)
  })

  test('loads what not everybody needs only when it is asked for', () => {
    expect(core.moduleIds.filter((id) => parts.test(id))).toEqual([])
    expect(all.moduleIds.filter((id) => parts.test(id))).toHaveLength(4)
  })
})

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

/** A bundler's notes to itself are left out. */
function bytesOf({ code }: OutputChunk): number {
  return gzipSync(code.replaceAll(/\/\*[^*]*\*\/ ?/g, ''), { level: 9 }).length
}

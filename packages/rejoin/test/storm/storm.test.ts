import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryLog } from '@rejoin/hub/memory'
import type { StormReport } from '@rejoin/storm'
import { describe, type TestContext, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { type ServeOptions, serve } from '../../src/serve.ts'
import { fakeProcess, run } from '../support/fake-process.ts'
import { nobody } from '../support/http.ts'
import { type Breakage, type BreakingProxyOptions, type BrokenStream, openBreakingProxy } from './breaking-proxy.ts'

type Cleanup = TestContext['onTestFinished']

const none = { lost: 0, doubled: 0, disordered: 0, foreign: 0, cursorless: 0 }
const calm = ['--cut', '0']
// A storm that is held ends as soon as everybody has everything, so this costs no time.
const patient = ['--patience', '60s']
const small = [
  '--readers',
  '8',
  '--channels',
  '2',
  '--patterns',
  '25',
  '--rate',
  '100',
  '--for',
  '2s',
  '--patience',
  '2s',
]
const cutting = ['--every', '1s', '--away', '1s']

describe.concurrent('a good hub', () => {
  test('holds a storm of readers that are cut and return, of channels and of patterns', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, hub } = await served({}, onTestFinished)
    const { exitCode, report } = await stormOn(url, [...cutting, ...patient, '--slow', '25', '--for', '3s'])
    expect(report).toMatchObject({ verdict: 'held', faults: none, gaps: { frames: 0 }, missingReaders: 0 })
    expect(report.plan).toMatchObject({ patternReaders: 2, slowReaders: 2 })
    expect(report.published).toBe(300)
    // Six readers have every other event, two have all.
    expect(report.delivered).toBe(6 * 150 + 2 * 300)
    expect(report.connections).toMatchObject({ drops: 0, unseenCursors: 0, closes: {}, rejections: {}, failures: {} })
    // A reader that has everything may be away at the end, and a cut may fall into a return.
    expect(report.connections.returns).toBeGreaterThanOrEqual(8)
    expect(report.connections.cuts).toBeGreaterThanOrEqual(report.connections.returns)
    expect(report.catchUpMs?.count).toBeGreaterThan(0)
    expect(report).toMatchObject({ keptChannels: 0, own: { wasBottleneck: report.own.busySeconds > 0 } })
    expect(exitCode).toBe(0)
    // It leaves no event behind.
    expect(await hub.admin.entries(`${report.plan.prefix}/0`)).toEqual([])
  })

  test('is told by a person-sized summary', async ({ expect, onTestFinished }) => {
    const { url } = await served({}, onTestFinished)
    const { stdout, exitCode } = await run(['storm', url, ...small, ...calm, ...patient, '--for', '1s'])
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^ {2}readers +8, 2 of them storm\/[0-9a-f]{8}\/\*$/m)
    expect(stdout).toMatch(/^ {2}delay +\d.* \(max\)$/m)
    expect(stdout).toMatch(/^ {2}published +100 events of 200 characters, 100\/s$/m)
    expect(stdout).toMatch(/^ {2}faults +0 lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless$/m)
    expect(stdout).toMatch(/\nHeld: nothing lost, doubled or out of order\. \(\d+\.\d s\)\n$/)
  })

  test('may announce gaps, which are counted apart and are no loss', async ({ expect, onTestFinished }) => {
    const log = memoryLog({ window: { maxEvents: 5 } })
    const { url } = await served({ log, hub: { hotBytes: 1 } }, onTestFinished)
    const { exitCode, report } = await stormOn(url, [...cutting, ...patient])
    expect(report).toMatchObject({ verdict: 'held', faults: none, missingReaders: 0 })
    expect(report.gaps.frames).toBeGreaterThan(0)
    expect(report.gaps.events).toBeGreaterThan(report.gaps.frames)
    expect(exitCode).toBe(0)
  })

  test('may be restarted in the middle of a storm', async ({ expect, onTestFinished }) => {
    const first = await served({ hub: { retryMs: 500 } }, onTestFinished)
    // A hub that stops may tell its readers to stay away for seconds.
    const storm = stormOn(first.url, [...calm, '--for', '4s', ...patient])
    await expect.poll(() => first.hub.admin.channels()).not.toEqual([])
    await first.close({ withinMs: 0 })
    await served({ hub: { retryMs: 500 }, port: Number(new URL(first.url).port) }, onTestFinished)
    const { exitCode, report } = await storm
    // The log was in memory, so what the first hub held is gone, and every reader is told.
    expect(report).toMatchObject({ verdict: 'held', faults: none, missingReaders: 0 })
    expect(report.gaps.frames).toBeGreaterThanOrEqual(8)
    expect(exitCode).toBe(0)
  })

  test('is given a token where it wants one', async ({ expect, onTestFinished }) => {
    const key = 'a-key-of-the-tests-of-the-storm-0123456789'
    const rights = { subscribe: ['load/*'], publish: ['load/*'] }
    const keys = [{ name: 'storm', sha256: hash('sha256', key), ...rights }]
    const { url } = await served({ access: { keys } }, onTestFinished)
    const args = [...small, ...calm, ...patient, '--for', '1s', '--prefix', 'load']
    const withFlag = await run(['storm', url, ...args, '--token', key])
    expect(withFlag.exitCode).toBe(0)
    const withVariable = await run(['storm', url, ...args], { env: { REJOIN_TOKEN: key } })
    expect(withVariable.exitCode).toBe(0)
    const without = await run(['storm', url, ...args])
    expect([without.exitCode, without.stderr]).toEqual([3, expect.stringContaining('--token, or REJOIN_TOKEN')])
    const wrong = await run(['storm', url, ...args, '--prefix', 'other', '--token', key])
    expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining('403')])
  })
})

describe.concurrent('a storm finds', () => {
  const every = (nth: number, breakage: (frame: string) => string[]): Breakage => {
    return (frame, number) => (number % nth === nth - 1 ? breakage(frame) : [frame])
  }
  const faults: [what: string, options: BreakingProxyOptions, found: (keyof typeof none)[]][] = [
    ['events that are lost', { breakage: every(10, () => []) }, ['lost']],
    ['the last events of a stream that are lost', { breakage: (frame, n) => (n < 40 ? [frame] : []) }, ['lost']],
    ['events that come twice', { breakage: every(10, (frame) => [frame, frame]) }, ['doubled']],
    [
      'events that were changed on the way',
      { breakage: every(10, (frame) => [frame.slice(0, -1)]) },
      ['lost', 'foreign'],
    ],
    ['events that come out of order', { breakage: swapNeighbours }, ['disordered']],
    ['events of other channels', { breakage: every(10, (frame) => [frame, otherChannel(frame)]) }, ['foreign']],
  ]

  test.for(faults)('%s', async ([, options, found], { expect, onTestFinished }) => {
    const { report, exitCode } = await brokenStorm(options, [...calm, '--patterns', '0'], onTestFinished)
    expect(namesOf(report)).toEqual(found)
    expect(report.verdict).toBe('broken')
    expect(found).toContain(report.examples[0]?.fault)
    expect(exitCode).toBe(1)
  })

  test('an event that is skipped silently when a reader returns', async ({ expect, onTestFinished }) => {
    const breakage: Breakage = (frame, number, { isReturn }) => (isReturn && number === 0 ? [] : [frame])
    const { report, exitCode } = await brokenStorm({ breakage }, cutting, onTestFinished)
    expect(namesOf(report)).toEqual(['lost'])
    expect(report.connections.unseenCursors).toBe(0)
    expect(exitCode).toBe(1)
  })

  test('a cursor that is stripped on the way, and says so', async ({ expect, onTestFinished }) => {
    const options = { stripped: ['last-event-id'] }
    const { report, exitCode } = await brokenStorm(options, cutting, onTestFinished)
    expect(namesOf(report)).toEqual(['lost'])
    expect(report.connections.unseenCursors).toBe(report.connections.returns)
    expect(exitCode).toBe(1)
    const { stdout } = await brokenStorm(options, cutting, onTestFinished, [])
    expect(stdout).toMatch(/Something on the way strips Last-Event-ID\. Find it with:\n {2}rejoin doctor http:/)
    expect(stdout).toMatch(/\n {2}Reader \d of storm\/\S+ never got event \d+\.\n/)
    expect(stdout).toMatch(/\nBroken: [1-9]\d* lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless\. \(/)
  })
})

describe.concurrent('a storm through a proxy that strips the ids of events', () => {
  test('finds the returns without a cursor and the events that they miss', async ({ expect, onTestFinished }) => {
    const { report, exitCode } = await brokenStorm({ stripsIds: true }, cutting, onTestFinished)
    expect(report.verdict).toBe('broken')
    expect(namesOf(report)).toEqual(['lost', 'cursorless'])
    expect(report.faults.cursorless).toBeGreaterThanOrEqual(8)
    expect(report.connections.returns).toBe(0)
    expect(exitCode).toBe(1)
  })

  test('says so, with advice', async ({ expect, onTestFinished }) => {
    const { stdout } = await brokenStorm({ stripsIds: true }, cutting, onTestFinished, [])
    expect(stdout).toMatch(
      /! Readers returned \d+ times without a cursor, because no event had an id\.\n {2}Something on the way strips id:\. Find it with:\n {2}rejoin doctor http:/,
    )
    expect(stdout).toMatch(/\n {2}Reader \d of storm\/\S+ returned without a cursor\.\n/)
    expect(stdout).toMatch(/\nBroken: [1-9]\d* lost, 0 doubled, 0 out of order, 0 foreign, [1-9]\d* cursorless\. \(/)
  })
})

describe.concurrent('a storm that cannot be held against the hub', () => {
  test('is unfinished when readers were rejected, and says what to look at', async ({ expect, onTestFinished }) => {
    const { url } = await served({ limits: { maxConnections: 5 } }, onTestFinished)
    const { exitCode, stdout } = await run(['storm', url, ...small, ...calm, '--for', '1s'])
    expect(stdout).toMatch(/! Readers were rejected: overloaded \(\d+\)\.\n {2}Look at the hub's settings/)
    expect(stdout).toMatch(/\nUnfinished: 3 of 8 readers were not back at the end\. The others missed nothing\./)
    expect(exitCode).toBe(4)
  })

  test('ends with a summary on Ctrl-C, and at once on the second', async ({ expect, onTestFinished }) => {
    const { url, hub } = await served({}, onTestFinished)
    const { host, stdout, exits, emit } = fakeProcess()
    const done = runProgram(['storm', url, ...small, '--for', '1h'], host)
    await expect.poll(() => hub.admin.channels()).not.toEqual([])
    emit('SIGINT')
    await done
    expect(stdout.join('')).toContain('Held: nothing lost')
    expect([host.exitCode, exits]).toEqual([130, []])
  })

  test('is unfinished when the hub stops taking events: says why, and leaves no event behind', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, hub } = await served({}, onTestFinished)
    const proxy = await openBreakingProxy(url, { publishes: 5 })
    onTestFinished(() => proxy.close())
    const { exitCode, report } = await stormOn(proxy.url, calm)
    expect(report).toMatchObject({ verdict: 'unfinished', faults: none, missingReaders: 0, keptChannels: 0 })
    expect(report.failure).toEqual({
      code: 'forbidden',
      message: expect.stringContaining('The quota is used up.'),
      retryable: false,
    })
    expect(report.published).toBeGreaterThan(0)
    // The two readers of the pattern have all of them.
    expect(report.delivered).toBeGreaterThan(2 * report.published)
    expect(exitCode).toBe(3)
    expect(await hub.admin.entries(`${report.plan.prefix}/0`)).toEqual([])
    const { stdout } = await stormOn(proxy.url, calm, [])
    expect(stdout).toMatch(/! Publishing failed after 0 events:\n {2}.*The quota is used up\./)
    expect(stdout).toMatch(/\nUnfinished: publishing failed\. The readers missed nothing until then\. \(/)
  })

  test('does not begin where nobody answers', async ({ expect }) => {
    const { exitCode, stderr } = await run(['storm', await nobody()])
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('No hub answers at')])
  })

  test('does not begin on a server that is no hub', async ({ expect, onTestFinished }) => {
    const server = createServer((_, response) => response.writeHead(404).end('no'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { exitCode, stderr } = await run(['storm', `http://127.0.0.1:${(server.address() as AddressInfo).port}`])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('it answers 404 to a reader. Check the address')])
  })
})

describe('a storm is bounded', () => {
  test('to this machine, unless its owner says otherwise', async ({ expect }) => {
    for (const host of ['hub.example', '192.168.1.7:4747', '127.0.0.1.evil.example']) {
      const { exitCode, stderr, stdout } = await run(['storm', `http://${host}`])
      expect([exitCode, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/is not this machine\. The storm would open 100 connections .* --i-own-this-server\n$/)
    }
  })

  test.for([
    [['--readers', '0'], 'Give a whole number from 1 to 60000'],
    [['--readers', '60001'], 'Give a whole number from 1 to 60000'],
    [['--rate', '1e9'], 'Give a whole number from 1 to 100000'],
    [['--for', '2h'], 'Give at most 60m'],
    [['--patience', '1d'], 'Give at most 10m'],
    [['--cut', '101'], 'from 0 to 100'],
    [['--every', 'often'], 'Give a time such as 30s'],
    [['--prefix', 'a//b'], 'a//b'],
  ] as const)('%j is rejected with advice', async ([args, words], { expect }) => {
    const { exitCode, stderr } = await run(['storm', 'http://127.0.0.1:1', ...args])
    expect([exitCode, stderr]).toEqual([args[0] === '--prefix' ? 2 : 1, expect.stringContaining(words)])
  })
})

async function served(options: ServeOptions, onTestFinished: Cleanup) {
  const server = await serve({ port: 0, ...options })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return server
}

async function stormOn(url: string, args: readonly string[], json: readonly string[] = ['--json']) {
  const { exitCode, stdout, stderr } = await run(['storm', url, ...small, ...args, ...json])
  const report = (json.length > 0 ? JSON.parse(stdout) : {}) as StormReport & { readonly keptChannels: number }
  return { exitCode, stdout, stderr, report }
}

async function brokenStorm(
  options: BreakingProxyOptions,
  args: readonly string[],
  onTestFinished: Cleanup,
  json?: readonly string[],
) {
  const { url } = await served({}, onTestFinished)
  const proxy = await openBreakingProxy(url, options)
  onTestFinished(() => proxy.close())
  return stormOn(proxy.url, args, json)
}

function namesOf({ faults }: StormReport): string[] {
  return Object.entries(faults)
    .filter(([, count]) => count > 0)
    .map(([name]) => name)
}

function swapNeighbours(frame: string, number: number, stream: BrokenStream): string[] {
  if (number % 10 === 3) {
    stream.kept = frame
    return []
  }
  return number % 10 === 4 ? [frame, stream.kept ?? ''] : [frame]
}

/** The event of the same stream with the number of one that went elsewhere. */
function otherChannel(frame: string): string {
  return frame.replace(/(?<=\ndata: )\d+/, (number) => String(Number(number) + 1))
}

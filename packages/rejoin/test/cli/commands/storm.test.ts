import { stripVTControlCharacters } from 'node:util'
import type { StormProgress, StormReport } from '@rejoin/storm'
import { describe, expect, test } from 'vitest'
import { deleteChannels } from '../../../src/cli/commands/storm-channels.ts'
import { stormLines } from '../../../src/cli/commands/storm-lines.ts'
import { progressLine, viewLines, watchStorm } from '../../../src/cli/commands/storm-view.ts'
import { createLiveView } from '../../../src/cli/live-view.ts'
import { fakeProcess } from '../../support/fake-process.ts'
import { nobody } from '../../support/http.ts'

const times = { count: 9, p50: 1.23, p99: 12.3, max: 2345 }
const none = { lost: 0, doubled: 0, disordered: 0, foreign: 0, cursorless: 0 }
const noLimit = { delayed: 0, rejected: 0 }
const plan = {
  ...{ readers: 1000, channels: 10, patternPercent: 10, slowPercent: 5, rate: 50, size: 200, prefix: 'storm/1' },
  ...{ forMs: 20_000, cutPercent: 100, cutEveryMs: 5000, patienceMs: 10_000 },
}
const report: StormReport = {
  url: 'http://127.0.0.1:4747',
  plan: { ...plan, patternReaders: 100, slowReaders: 50 },
  verdict: 'held',
  ...{ published: 1000, delivered: 190_000, faults: none, examples: [], missingReaders: 0 },
  ...{ publishMs: 20_000, ms: 23_450 },
  gaps: { frames: 0, events: 0 },
  ...{ delayMs: times, catchUpMs: times },
  connections: {
    cuts: 3000,
    returns: 2990,
    drops: 0,
    unseenCursors: 0,
    closes: {},
    rejections: {},
    limitReq: noLimit,
    failures: {},
  },
  own: { seconds: 23, busySeconds: 0, wasBottleneck: false, busy: 0.3, cpu: 0.25, worstDelayMs: 12 },
}
const progress: StormProgress = {
  ...{ stage: 'storm', stageMs: 12_345, connected: 500, published: 600, delivered: 57_000, cuts: 2000, returns: 1500 },
  ...{ gaps: 0, faults: none, delayMs: times, catchUpMs: undefined, own: report.own },
} as const

describe('the summary', () => {
  test('has the figures, then the verdict', () => {
    expect(linesOf({})).toEqual([
      '',
      '  readers    1,000, 100 of them storm/1/*, 50 slow',
      '  channels   10, storm/1/0 and on',
      '  published  1,000 events of 200 characters, 50/s',
      '  delivered  190,000 events, 9,500/s',
      '  delay      1.2 ms (p50), 12 ms (p99), 2.3 s (max)',
      '  cuts       3,000',
      '  returns    2,990, up to date after 1.2 ms (p50), 12 ms (p99), 2.3 s (max)',
      '  faults     0 lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless',
      '  gaps       none',
      '  own load   25 % of one core, at worst 12 ms late',
      '',
      'Held: nothing lost, doubled or out of order. (23.4 s)',
    ])
  })

  test('says when the storm itself was the bottleneck, and whether other programs are in its way', () => {
    const own = { seconds: 20, busySeconds: 7, wasBottleneck: true, busy: 0.96, cpu: 0.94, worstDelayMs: 310 }
    const lines = linesOf({ own })
    expect(lines).toContain('! The storm itself was the bottleneck in 7 of 20 s.')
    expect(lines).toContain('  Use fewer readers or events, or share them between several storms.')
    expect(linesOf({ own: { ...own, cpu: 0.2 } })).toContain(
      '  Other programs take its processor time. Use another machine than the hub has.',
    )
  })

  test('names what was lost, and to whom', () => {
    const examples = [
      { fault: 'lost', reader: 17, selector: 'storm/1/7', event: 1207 },
      { fault: 'doubled', reader: 3, selector: 'storm/1/*', event: 9, id: '01J\u001b[2J' },
    ] as const
    const lines = linesOf({ verdict: 'broken', faults: { ...none, lost: 1, doubled: 1 }, examples })
    expect(lines).toContain('  Reader 17 of storm/1/7 never got event 1,207.')
    expect(lines).toContain('  Reader 3 of storm/1/* got event 9 again (id 01J\ufffd[2J).')
    expect(lines.at(-1)).toBe('Broken: 1 lost, 1 doubled, 0 out of order, 0 foreign, 0 cursorless. (23.4 s)')
  })

  test('tells announced gaps from losses', () => {
    const lines = linesOf({ gaps: { frames: 12, events: 340 } })
    expect(lines).toContain('  gaps       12 announced, with 340 events')
    expect(lines.at(-1)).toBe(
      'Held: nothing lost, doubled or out of order. 340 are gone, and their readers were told. (23.4 s)',
    )
  })

  test.each([
    [{ EMFILE: 3 }, 'This process has no open files left: ulimit -n.'],
    [{ EADDRNOTAVAIL: 3 }, 'This machine has no ports left: net.ipv4.ip_local_port_range.'],
    [{ ECONNREFUSED: 3 }, 'Nobody listened there at the time.'],
    [{ 'no answer': 3 }, 'limits.maxSilentPerIp'],
    [{ ECONNRESET: 3 }, 'may be out of open files'],
  ])('says what connections failed of: %j', (failures, advice) => {
    const lines = linesOf({ connections: { ...report.connections, failures } })
    expect(lines).toContain(`! Connections failed: ${Object.keys(failures)[0]} (3).`)
    expect(lines.join('\n')).toContain(advice)
  })

  test('says when limit_req of a proxy was measured, and blames the hub only for what the hub rejected', () => {
    const limited = { ...report.connections, closes: { overloaded: 30 }, limitReq: { delayed: 120, rejected: 30 } }
    const text = linesOf({ connections: limited }).join('\n')
    expect(text).toContain('! limit_req of nginx delayed 120 streams and rejected 30.')
    expect(text).not.toContain('limits.*')
    expect(linesOf({ connections: { ...limited, closes: { overloaded: 31 } } }).join('\n')).toContain('limits.*')
    expect(linesOf({ connections: { ...limited, limitReq: noLimit } }).join('\n')).not.toContain('limit_req')
  })

  test('says when fewer events were published than asked for, and when channels are left behind', () => {
    expect(linesOf({ published: 700 }).join('\n')).toContain('! 700 of 1,000 events were published in time.')
    expect(stormLines(report, { colour: false, kept: 4 }).join('\n')).toContain('! 4 channels could not be deleted.')
  })

  test('has the rates of the time in which events were published', () => {
    expect(linesOf({ publishMs: 2000, published: 100 })).toContain('  published  100 events of 200 characters, 50/s')
  })

  test('says why publishing failed', () => {
    const failure = { code: 'forbidden', message: 'You may not publish.\u001b[2J', retryable: false } as const
    const lines = linesOf({ verdict: 'unfinished', failure, published: 300 })
    expect(lines.join('\n')).toContain('! Publishing failed after 300 events:\n  You may not publish.\ufffd[2J\n')
    expect(lines.join('\n')).not.toContain('in time')
    expect(lines.at(-1)).toBe('Unfinished: publishing failed. The readers missed nothing until then. (23.4 s)')
    expect(linesOf({ verdict: 'unfinished', failure, missingReaders: 2 }).at(-1)).toContain('2 of 1,000 readers')
  })

  test('counts every channel that a hub which is gone has kept', async () => {
    expect(await deleteChannels({ ...plan, channels: 20 }, { url: await nobody() })).toBe(20)
  })

  test('fits into 80 columns', () => {
    const failures = { ECONNRESET: 1000, ETIMEDOUT: 2000 }
    const connections = {
      ...report.connections,
      drops: 4000,
      unseenCursors: 3000,
      closes: { overloaded: 70 },
      failures,
    }
    const own = { ...report.own, busySeconds: 7, wasBottleneck: true }
    const faults = { ...none, lost: 58_520, cursorless: 3000 }
    const failure = { code: 'log-unavailable', message: 'word '.repeat(40) + 'x'.repeat(90), retryable: true } as const
    const lines = linesOf({ connections, own, faults, failure, published: 12 })
    expect(lines.filter(({ length }) => length > 80)).toEqual([])
    expect(lines.join(' ').match(/\bword\b/g)).toHaveLength(40)
  })
})

describe('the view', () => {
  test('shows the state of the storm', () => {
    expect(viewLines('http://127.0.0.1:4747', plan, progress, false)).toEqual([
      'http://127.0.0.1:4747  12 s of 20 s',
      '  readers   ████████████░░░░░░░░░░░░ 500 of 1,000 connected',
      '  events    600 published, 57,000 delivered',
      '  delay     1.2 ms (p50), 12 ms (p99), 2.3 s (max)',
      '  cuts      2,000',
      '  returns   1,500, up to date after -',
      '  faults    0 lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless',
      '  gaps      0 announced',
      '  own load  25 % of one core',
    ])
    const full = viewLines('http://127.0.0.1:4747', plan, { ...progress, catchUpMs: times, returns: 123_456 }, false)
    expect(full.filter(({ length }) => length > 79)).toEqual([])
  })

  test('has the same columns with colours, and has colours unless the user asked for none', () => {
    const url = 'http://127.0.0.1:4747'
    const coloured = viewLines(url, plan, progress, true)
    expect(coloured.map(stripVTControlCharacters)).toEqual(viewLines(url, plan, progress, false))
    const shown = (env: Record<string, string>) => {
      const { host, stderr } = fakeProcess({ isTTY: true, env })
      watchStorm(url, plan, host).show(progress)
      return stderr.join('')
    }
    expect(shown({})).toContain('\u001b[1m')
    expect(shown({ NO_COLOR: '1' })).not.toContain('\u001b[1m')
  })

  test('is a line now and then in a pipe', () => {
    expect(progressLine(plan, { ...progress, faults: { ...none, lost: 2 } })).toBe(
      '12 s of 20 s: 500 of 1,000 readers connected, 600 events published, 57,000 delivered; ' +
        '2 lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless',
    )
    const { host, stderr } = fakeProcess()
    const view = watchStorm('http://127.0.0.1:4747', plan, host)
    for (let times = 0; times < 9; times += 1) view.show(progress)
    view.clear()
    expect(stderr).toEqual([])
  })

  test('is written over in a terminal, cut to its width, and taken away at the end', () => {
    const written: string[] = []
    const stderr = { isTTY: true, columns: 10, write: (text: string) => written.push(text) }
    const view = createLiveView({ stderr, env: {} })
    view.show(['one', 'a line that is too long'])
    view.show(['two', 'short'])
    view.clear()
    expect(written).toEqual([
      'one\u001b[K\na line t…\u001b[K\n\u001b[J',
      '\u001b[2A\rtwo\u001b[K\nshort\u001b[K\n\u001b[J',
      '\u001b[2A\r\u001b[J',
    ])
  })
})

function linesOf(changes: Partial<StormReport>): string[] {
  return stormLines({ ...report, ...changes }, { colour: false, kept: 0 })
}

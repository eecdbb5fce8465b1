import type { Hub, HubObservations } from '@rejoin/hub'
import type { LogLevel } from '@rejoin/hub/operations'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'
import { createLogging } from '../../src/logging/choose-logging.ts'
import type { Logging, Readiness } from '../../src/logging/logging.ts'
import { terminal, windowWords } from '../../src/logging/terminal.ts'

const ready: Readiness = {
  version: '1.2.3',
  url: 'http://127.0.0.1:4747',
  log: { name: 'memory', window: { maxEvents: 1000, maxAgeMs: 300_000, maxBytes: Number.POSITIVE_INFINITY } },
  loopbackOnly: true,
  access: false,
}
const reader = {
  ip: '127.0.0.1',
  userAgent: 'curl/8',
  subject: null,
  connection: 'c_8f2a',
  channels: ['demo'],
}
const replay = { ...reader, requested: 'X', replayed: 11, elapsedMs: 2.8, absenceMs: 5000 }
const gap = { ...reader, reason: 'expired', requested: 'X', absenceMs: null, resuming: true, replayed: 2 } as const
const small = {
  channel: 'demo',
  absenceMs: 60_000,
  eventsPerSecond: 5,
  has: { maxEvents: 500, maxAgeMs: 300_000 },
  needs: { maxEvents: 600, maxAgeMs: 120_000 },
}

describe('at a terminal', () => {
  test('the program says where it is, what it keeps, who may come, and what to try', () => {
    expect(onTerminal(({ ready: announce }) => announce(ready))).toMatchInlineSnapshot(`
      "
        Rejoin 1.2.3  http://127.0.0.1:4747

        log      memory, the last 1,000 events or 5 minutes of each channel
        open to  this machine only

        look     http://127.0.0.1:4747/
        watch    curl -N http://127.0.0.1:4747/events/demo
        publish  curl -d hello http://127.0.0.1:4747/publish/demo
        return   curl -N -H 'Last-Event-ID: <id you saw>' http://127.0.0.1:4747/events/demo

      "
    `)
  })

  test('it warns aloud when others may come', () => {
    const text = onTerminal((logging) => logging.ready({ ...ready, url: 'http://0.0.0.0:4747', loopbackOnly: false }))
    expect(text).toContain('everyone who can reach this address')
    expect(text).toContain('WARNING: no access rules are set.')
  })

  test('it does not warn when there are rules for those who come', () => {
    const text = onTerminal((logging) => logging.ready({ ...ready, loopbackOnly: false, access: true }))
    expect(text).toContain('open to  those whom the access rules let in')
    expect(text).not.toContain('WARNING')
  })

  test('it says where its admin port is', () => {
    const adminUrl = 'http://127.0.0.1:4748'
    const text = onTerminal((logging) => logging.ready({ ...ready, adminUrl }))
    expect(text).toContain('admin      http://127.0.0.1:4748/openapi.json\n')
    expect(text).toContain('dashboard  http://127.0.0.1:4748/dashboard\n')
  })

  test('each reader that comes back is a line', () => {
    expect(onTerminal((logging) => observe(logging, 'replay', replay))).toBe(
      '12:04:31 rejoined demo c_8f2a, 11 replayed in 3 ms\n',
    )
  })

  test('a reader of many channels takes no more than a line', () => {
    const channels = ['a', 'b', 'c', 'd', 'e']
    expect(onTerminal((logging) => observe(logging, 'replay', { ...replay, channels }))).toBe(
      '12:04:31 rejoined a, b, c and 2 more c_8f2a, 11 replayed in 3 ms\n',
    )
  })

  test('a reader that was told of a gap is a line with the reason', () => {
    expect(onTerminal((logging) => observe(logging, 'gap', { ...gap, reason: 'epoch' }))).toBe(
      '12:04:31 gap demo c_8f2a, told to reload: its last id is of an earlier log\n',
    )
  })

  test('a window that is too small for its readers is a line that says what would do', () => {
    expect(onTerminal((logging) => observe(logging, 'window', small))).toBe(
      '12:04:31 window demo is small: readers are away for up to 60 s, keep 600 events and 2 min\n',
    )
  })

  test('a stream that ends by itself is not worth a line, one that failed is', () => {
    const end = { ...reader, reason: 'log-unavailable', durationMs: 5, cause: undefined }
    expect(onTerminal((logging) => observe(logging, 'close', end))).toBe('')
    expect(onTerminal((logging) => observe(logging, 'close', { ...end, cause: new Error('disk full') }))).toBe(
      '12:04:31 failed demo c_8f2a, log-unavailable: Error: disk full\n',
    )
  })

  test('the rejected requests that were only counted are told when the program fails, and when it ends', () => {
    const rejected = { ...reader, reason: 'per-ip', status: 503 } as const
    const end = (logging: Logging, act: () => void) => {
      for (let n = 0; n < 150; n += 1) logging.rejected(rejected)
      act()
    }
    expect(onTerminal((logging) => end(logging, () => logging.failed('impossible')))).toMatch(
      /rejected 50 more requests\n12:04:31 failed and ends: impossible\n$/,
    )
    expect(onTerminal((logging) => end(logging, () => logging.ended()))).toMatch(/rejected 50 more requests\n$/)
  })

  test.each([
    [{}, true],
    [{ NO_COLOR: '' }, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
  ])('with %j there is colour: %s', async (env, coloured) => {
    const written: string[] = []
    const stdout = { isTTY: true, write: (text: string) => written.push(text) }
    const logging = await createLogging({ stdout, env })
    logging.ready(ready)
    expect(written.join('').includes('\u001b[')).toBe(coloured)
  })
})

describe('in a pipe', () => {
  test('the program says where it is in one JSON line', async () => {
    const [line] = await inPipe((logging) => logging.ready(ready))
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      event: 'server_ready',
      version: '1.2.3',
      url: 'http://127.0.0.1:4747',
      log: 'memory',
      max_events: 1000,
      max_age_ms: 300_000,
      max_bytes: null,
      loopback_only: true,
      access: false,
    })
  })

  test('it warns when others may come', async () => {
    const lines = await inPipe((logging) => logging.ready({ ...ready, loopbackOnly: false }))
    expect(lines[1]).toMatchObject({ level: 'warn', event: 'server_insecure', msg: expect.stringContaining('WARNING') })
  })

  test('a window that is too small for its readers is a warning', async () => {
    const [line] = await inPipe((logging) => observe(logging, 'window', small))
    expect(line).toMatchObject({ level: 'warn', event: 'window_small', channel: 'demo', needed_events: 600 })
  })

  test('a log that is away, what is published meanwhile, and its return can be audited', async () => {
    const lines = await inPipe((logging) => {
      observe(logging, 'silence', { silentMs: 10_400.5 })
      observe(logging, 'local', { channel: 'demo', type: 'message', id: 'X', bytes: 2, subject: null })
      observe(logging, 'healed', { channels: ['demo'] })
      logging.warned('Redis has appendonly no')
    })
    expect(lines).toMatchObject([
      { level: 'error', event: 'log_silent', silent_ms: 10_401 },
      { level: 'warn', event: 'publish_local', channel: 'demo', id: 'X', bytes: 2 },
      { level: 'warn', event: 'log_healed', channels: ['demo'] },
      { level: 'warn', event: 'server_warning', msg: 'Redis has appendonly no' },
    ])
  })

  test('a log whose files were removed is an error that says so', async () => {
    const cause = new RejoinError('The file data.mdb was removed.', { code: 'log-unavailable' })
    const [line] = await inPipe((logging) => observe(logging, 'silence', { silentMs: 0, cause }))
    expect(line).toMatchObject({ level: 'error', event: 'log_lost', cause: expect.stringContaining('was removed') })
  })

  test('a connection, a replay, a gap and an end are lines of their own', async () => {
    const known = { connection_id: 'c_8f2a', channels: ['demo'], client_ip: '127.0.0.1', user_agent: 'curl/8' }
    const lines = await inPipe((logging) => {
      observe(logging, 'connect', { ...reader, requested: null, resuming: false })
      observe(logging, 'replay', replay)
      observe(logging, 'gap', gap)
      observe(logging, 'gap', { ...gap, resuming: false })
      const unfinished = { requested: 'X', found: true, replayed: 3 } as const
      observe(logging, 'close', { ...reader, reason: 'left', durationMs: 5, cause: undefined, unfinished })
      observe(logging, 'close', { ...reader, reason: 'failed', durationMs: 5, cause: new Error('disk full') })
      observe(logging, 'stall', { ...reader, pending: 70_000 })
      logging.stopping('SIGTERM')
    })
    expect(lines).toMatchObject([
      { ...known, level: 'info', event: 'sse_connect', last_event_id: null, resuming: false },
      {
        ...known,
        level: 'info',
        event: 'sse_replay',
        requested_id: 'X',
        found_in_window: true,
        replayed_count: 11,
        channel: 'demo',
      },
      {
        ...{
          ...known,
          level: 'warn',
          event: 'sse_replay',
          requested_id: 'X',
          found_in_window: false,
          reason: 'expired',
        },
        ...{ channel: 'demo', caught_up: false, replayed_count: 2 },
      },
      { ...known, level: 'warn', event: 'sse_gap', requested_id: 'X', found_in_window: false, reason: 'expired' },
      {
        ...known,
        level: 'info',
        event: 'sse_replay',
        found_in_window: true,
        caught_up: false,
        replayed_count: 3,
        channel: 'demo',
      },
      { ...known, level: 'info', event: 'sse_disconnect', reason: 'left', duration_ms: 5 },
      { ...known, level: 'error', event: 'sse_disconnect', reason: 'failed', cause: 'Error: disk full' },
      { ...known, level: 'warn', event: 'sse_stall', pending_bytes: 70_000 },
      { level: 'info', event: 'server_stopping', signal: 'SIGTERM' },
    ])
  })

  test('whatever a reader sends stays within its line, and is neither obeyed nor long', async () => {
    const written: string[] = []
    const logging = await createLogging({ stdout: { write: (text) => written.push(text) }, env: {} })
    const hostile = 'x"\r\n{"level":"fatal"}\u2028\u009b31m\u202e\u0000'
    const userAgent = `${hostile}${'x'.repeat(10_000)}`
    const facts = {
      ...reader,
      userAgent,
      subject: hostile,
      channels: Array<string>(100).fill(`\u2028\u202e${'x'.repeat(250)}`),
    }
    observe(logging, 'gap', { ...gap, ...facts, reason: 'unknown-id', requested: hostile })
    observe(logging, 'connect', { ...facts, requested: hostile, resuming: true })
    logging.reconnected({ attempt: 1, delayMs: 1, url: hostile, timestamp: userAgent, ip: null, userAgent })
    expect(written).toHaveLength(3)
    for (const line of written) {
      expect(line).toMatch(/^[^\u0000-\u001f\u007f-\u009f\u2028\u202e]+\n$/)
      expect(line).not.toMatch(/\\[rnu]/)
      expect(line.length).toBeLessThan(4000)
    }
    expect(JSON.parse(written[1] as string)).toMatchObject({ channel_count: 100 })
  })

  test('a crowd of readers is a hundred lines and a count of the rest, and every line for those who ask for it', async () => {
    const crowd = (logging: Logging) => {
      for (let n = 0; n < 150; n += 1) observe(logging, 'connect', { ...reader, requested: null, resuming: false })
      for (let n = 0; n < 30; n += 1) {
        observe(logging, 'close', { ...reader, reason: 'left', durationMs: 5, cause: undefined })
      }
      logging.stopping('SIGTERM')
    }
    const lines = await inPipe(crowd)
    expect(lines).toHaveLength(102)
    expect(lines.at(-2)).toMatchObject({ level: 'info', event: 'sse_more', sse_connect: 50, sse_disconnect: 30 })
    expect(await inPipe(crowd, 'debug')).toHaveLength(181)
  })

  test('the readers that were only counted are told when the program fails, and when it ends', async () => {
    const connect = { ...reader, requested: null, resuming: false }
    const close = { ...reader, reason: 'drain', durationMs: 5, cause: undefined }
    const lines = await inPipe((logging) => {
      for (let n = 0; n < 150; n += 1) observe(logging, 'connect', connect)
      logging.failed(new Error('impossible'))
      for (let n = 0; n < 130; n += 1) observe(logging, 'close', close)
      logging.ended()
    })
    expect(lines.slice(100, 102)).toMatchObject([{ event: 'sse_more', sse_connect: 50 }, { event: 'server_failed' }])
    expect(lines.slice(202)).toMatchObject([{ event: 'sse_more', sse_disconnect: 30 }])
  })

  test('publishes are lines only for those who ask for them', async () => {
    const published = { channel: 'demo', type: 'message', id: 'X', bytes: 5, subject: 'alice', repeated: false }
    expect(await inPipe((logging) => observe(logging, 'publish', published))).toEqual([])
    expect(await inPipe((logging) => observe(logging, 'publish', published), 'debug')).toMatchObject([
      { level: 'debug', event: 'publish', channel: 'demo', type: 'message', id: 'X', bytes: 5, subject: 'alice' },
    ])
  })

  test('a rejected reader, a client’s report, an operator’s act and a failure are lines', async () => {
    const lines = await inPipe((logging) => {
      observe(logging, 'reject', { ...reader, reason: 'per-ip', status: 503 })
      const timestamp = '2026-01-01T00:00:00.000Z'
      const url = 'http://localhost/events/demo'
      logging.reconnected({ attempt: 2, delayMs: 800, url, timestamp, ip: '::1', userAgent: null })
      logging.administered({ action: 'revoke', target: 'alice', ip: '::1' })
      logging.certificate({})
      logging.certificate({ cause: new Error('no key') })
      logging.failed(new Error('impossible'))
    })
    expect(lines).toMatchObject([
      { level: 'warn', event: 'sse_reject', status: 503, reason: 'per-ip', client_ip: '127.0.0.1' },
      { level: 'info', event: 'sse_reconnect', attempt: 2, delay_ms: 800, url: 'http://localhost/events/demo' },
      { level: 'warn', event: 'admin', action: 'revoke', target: 'alice' },
      { level: 'info', event: 'tls_reloaded' },
      { level: 'warn', event: 'tls_reload_failed', cause: 'Error: no key' },
      { level: 'fatal', event: 'server_failed', cause: 'Error: impossible', stack: expect.stringContaining('at ') },
    ])
  })

  test('a failure names its cause, once', async () => {
    const unreachable = new Error('connect ECONNREFUSED ::1:443')
    const lines = await inPipe((logging) => {
      observe(logging, 'error', {
        cause: new Error('no keys', { cause: new TypeError('fetch failed', { cause: unreachable }) }),
      })
      observe(logging, 'error', { cause: new Error('no keys: gone', { cause: new Error('gone') }) })
    })
    expect(lines).toMatchObject([
      { event: 'request_failed', cause: 'Error: no keys: fetch failed: connect ECONNREFUSED ::1:443' },
      { event: 'request_failed', cause: 'Error: no keys: gone' },
    ])
  })
})

test.each([
  [{ maxEvents: 5, maxAgeMs: 7_200_000, maxBytes: 2048 }, 'the last 5 events, 2 hours or 2 KiB of each channel'],
  [{ maxEvents: 1000, maxAgeMs: 300_000 }, 'the last 1,000 events or 5 minutes of each channel'],
  [{ maxEvents: 1 }, 'the last 1 event of each channel'],
  [{ maxAgeMs: 86_400_000 }, 'the last 1 day of each channel'],
  [{ maxAgeMs: 90_000, maxBytes: 64 * 1024 * 1024 }, 'the last 90 seconds or 64 MiB of each channel'],
  [{ maxAgeMs: 1, maxBytes: 1000 }, 'the last 1 millisecond or 1,000 bytes of each channel'],
  [{ maxEvents: Number.POSITIVE_INFINITY }, 'everything'],
])('the window %j is %s', (window, words) => {
  expect(windowWords(window)).toBe(words)
})

function onTerminal(act: (logging: Logging) => void): string {
  const written: string[] = []
  const now = () => new Date(2026, 0, 1, 12, 4, 31).getTime()
  act(terminal({ write: (text) => written.push(text), colour: false, now }))
  return written.join('')
}

async function inPipe(act: (logging: Logging) => void, level?: LogLevel): Promise<unknown[]> {
  const written: string[] = []
  act(await createLogging({ stdout: { write: (text) => written.push(text) }, env: {} }, level))
  const lines = written.join('').split('\n')
  expect(lines.pop()).toBe('')
  return lines.map((line) => JSON.parse(line))
}

function observe<Kind extends keyof HubObservations>(
  logging: Logging,
  kind: Kind,
  observation: HubObservations[Kind],
): void {
  const on = (watched: string, tell: (observation: never) => void) => {
    if (watched === kind) tell(observation as never)
    return () => undefined
  }
  logging.watch({ on } as unknown as Pick<Hub, 'on'>)
}

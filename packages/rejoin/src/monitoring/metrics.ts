import type { Hub } from '@rejoin/hub'
import { type Account, hubEndpoints } from '@rejoin/hub/internal'
import type { ReconnectReport } from '@rejoin/hub/operations'
import { closeReasons, errorCodes, gapReasons, RejoinError } from '@rejoin/protocol'
import type { Registry } from 'prom-client'
import { tallyConnections } from '../admin/connections.ts'
import type { Route } from '../http/routes.ts'
import { createBusiestAddress } from './busiest-address.ts'
import type { Readiness } from './health.ts'
import { watchWindowAge } from './window-age.ts'

/** The metrics of the program, in the format of Prometheus. docs/reference/metrics.md has a line for each. */
export interface Metrics {
  readonly registry: Registry
  /** Called when a limit has rejected a request. */
  rejected(kind: string): void
  /** Called when a client has reported a reconnect. */
  reconnected(report: ReconnectReport): void
  /** Called when a request at this endpoint was answered. */
  answered(endpoint: string, status: number): void
}

export interface MetricsOptions {
  readonly hub: Hub
  readonly readiness: Pick<Readiness, 'check'>
  readonly version: string
}

/**
 * Labels take values of closed lists only, so that no client can create more series. There is no label for channels, because
 * their number has no bound. Every series of a closed list starts at zero: a rate needs a first value.
 */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  const { hub, readiness, version } = options
  // Loaded on demand, because loading takes about 30 ms of a start.
  const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  function counter(name: string, help: string): () => void {
    const made = new Counter({ name, help, registers })
    return () => made.inc()
  }

  /** A counter whose value the hub keeps. */
  function total(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }

  /**
   * A counter with one label. A word that is not in the list counts as the last word of the list. The counts are kept in a map
   * until a scrape: `inc()` with labels costs 0.4 µs, and every publish would pay it.
   */
  function counterBy(name: string, help: string, label: string, words: readonly string[]): (word: string) => void {
    const counts = new Map(words.map((word) => [word, 0]))
    const last = words.at(-1) as string
    new Counter({
      name,
      help,
      registers,
      labelNames: [label],
      collect() {
        this.reset()
        for (const [word, count] of counts) this.inc({ [label]: word }, count)
      },
    })
    return (word) => {
      const known = counts.has(word) ? word : last
      counts.set(known, (counts.get(known) as number) + 1)
    }
  }

  function gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read())
      },
    })
  }

  function histogram(name: string, help: string, buckets: number[]): (value: number) => void {
    const made = new Histogram({ name, help, registers, buckets })
    return (value) => made.observe(value)
  }

  new Gauge({
    name: 'rejoin_info',
    help: 'Always 1. The labels name the version and the kind of log.',
    registers,
    labelNames: ['version', 'log'],
  }).set({ version, log: hub.log.name }, 1)
  gauge('rejoin_ready', '1 while /readyz would answer 200, else 0.', async () =>
    (await readiness.check()).ready ? 1 : 0,
  )

  let connections = 0
  const busiest = createBusiestAddress()
  gauge('rejoin_connections', 'Readers that are connected now, with a stream or a poll.', () => connections)
  gauge('rejoin_busiest_address_connects', 'Connects of the busiest address, within one minute.', busiest.connects)
  const modes = new Gauge({
    name: 'rejoin_readers',
    help: 'Connected readers, by mode.',
    registers,
    labelNames: ['mode'],
    collect() {
      const { live, replaying } = tallyConnections(hub.admin)
      modes.set({ mode: 'live' }, live)
      modes.set({ mode: 'replaying' }, replaying)
    },
  })
  gauge(
    'rejoin_slow_readers',
    'Slow readers: more than sinkBudgetBytes wait for each of them.',
    () => tallyConnections(hub.admin).slow,
  )
  gauge(
    'rejoin_backlog_bytes',
    'Bytes that wait in memory for all readers together.',
    () => tallyConnections(hub.admin).pendingBytes,
  )
  const accounts = Object.entries(hub.port.memory)
  const perAccount = (name: string, help: string, read: (account: Account) => number) =>
    new Gauge({
      name,
      help,
      registers,
      labelNames: ['account'],
      collect() {
        for (const [account, figures] of accounts) this.set({ account }, read(figures))
      },
    })
  perAccount(
    'rejoin_buffer_bytes',
    'Bytes of slow streams, answers and publish bodies in memory, by account.',
    ({ bytes }) => bytes,
  )
  perAccount('rejoin_buffer_max_bytes', 'The most bytes that an account may hold.', ({ maxBytes }) => maxBytes)
  new Counter({
    name: 'rejoin_buffer_evictions_total',
    help: 'Streams closed, answers dropped and bodies rejected to free memory, by account and reason.',
    registers,
    labelNames: ['account', 'reason'],
    collect() {
      this.reset()
      for (const [account, { evictions }] of accounts) {
        for (const [reason, count] of Object.entries(evictions)) this.inc({ account, reason }, count)
      }
    },
  })
  const budget = () => hub.log.budget?.().catch(() => undefined)
  gauge(
    'rejoin_log_bytes',
    'Bytes that all channels hold together. NaN without --log-max-bytes.',
    async () => (await budget())?.usedBytes ?? Number.NaN,
  )
  gauge(
    'rejoin_log_max_bytes',
    'Bytes that all channels may hold together. Beyond them, the oldest events are removed. NaN without --log-max-bytes.',
    async () => (await budget())?.maxBytes ?? Number.NaN,
  )
  const windowAge = watchWindowAge(hub)
  gauge(
    'rejoin_window_age_seconds',
    'The absence that the smallest window bridges for certain, among 100 channels that readers returned to.',
    async () => (await windowAge()) / 1000,
  )

  const connected = counterBy(
    'rejoin_connects_total',
    'Connects of readers. resuming is true for readers with a cursor.',
    'resuming',
    ['true', 'false'],
  )
  const resumed = counterBy(
    'rejoin_resumes_total',
    'Readers that connected with a cursor, by outcome.',
    'outcome',
    resumeOutcomes,
  )
  const gapAnnounced = counterBy(
    'rejoin_gaps_total',
    'Gaps that readers were told of, by reason.',
    'reason',
    gapReasons,
  )
  const ended = counterBy('rejoin_closes_total', 'Closed connections of readers, by reason.', 'reason', [
    ...closeReasons,
    ...['disconnected', 'stalled', 'failed'],
  ])
  const rejected = counterBy('rejoin_rejects_total', 'Rejected requests, by kind.', 'kind', rejectKinds)
  const smallWindow = counter(
    'rejoin_small_windows_total',
    'Times that a window was found too small for its returning readers.',
  )
  const requestFailed = counter(
    'rejoin_request_failures_total',
    'Requests that failed because of a fault in the program.',
  )

  const replayedEvents = histogram('rejoin_replayed_events', 'Events that were replayed to a returning reader.', [
    ...[0, 1, 10, 100, 1000, 10_000, 100_000],
  ])
  const replaySeconds = histogram('rejoin_replay_seconds', 'Time until a returning reader had caught up.', [
    ...[0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
  ])
  const absenceSeconds = histogram('rejoin_absence_seconds', 'How long returning readers had been away.', [
    ...[1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400],
  ])
  const streamSeconds = histogram('rejoin_connection_seconds', 'How long connections of readers lasted.', [
    ...[1, 10, 60, 300, 1800, 7200, 28_800, 86_400],
  ])

  total(
    'rejoin_events_total',
    'Events that this hub has received from the log, published on any hub.',
    () => hub.admin.totals.events,
  )
  total(
    'rejoin_deliveries_total',
    'Events handed to readers. An event for 100 readers counts 100 times.',
    () => hub.admin.totals.deliveries,
  )
  total(
    'rejoin_delivered_bytes_total',
    'Bytes handed to readers, with all frames and heartbeats.',
    () => hub.admin.totals.bytes,
  )
  const published = counterBy(
    'rejoin_publishes_total',
    'Publishes, by result. A batch counts as one publish.',
    'result',
    [...['ok', ...errorCodes, 'failed']],
  )
  const publishSeconds = histogram(
    'rejoin_publish_seconds',
    'Time until the log had stored a publish and the hub had dispatched it.',
    [...[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10]],
  )

  const reported = counterBy(
    'rejoin_client_reconnects_total',
    'Reconnects that clients reported. attempt counts from the last connection of the client.',
    'attempt',
    attempts,
  )
  const reportedDelay = histogram(
    'rejoin_client_reconnect_delay_seconds',
    'How long clients waited before they reconnected, by their own reports.',
    [0.1, 0.5, 1, 2.5, 5, 10, 30, 60],
  )
  const responses = new Map([...endpoints, 'other'].map((endpoint) => [endpoint, new Map<number, number>()]))
  new Counter({
    name: 'rejoin_http_responses_total',
    help: 'Answered requests, by path and status.',
    registers,
    labelNames: ['path', 'status'],
    collect() {
      this.reset()
      for (const [endpoint, counts] of responses) {
        const path = endpoint === 'other' ? endpoint : `/${endpoint}`
        for (const [status, count] of counts) this.inc({ path, status }, count)
      }
    },
  })

  // Connections that came with a cursor, and have neither caught up nor been told of a gap.
  const returning = new Set<string>()
  hub.on('connect', ({ connection, resuming, ip }) => {
    connections += 1
    busiest.connected(ip)
    connected(String(resuming))
    if (resuming) returning.add(connection)
  })
  hub.on('replay', ({ connection, replayed, elapsedMs, absenceMs }) => {
    returning.delete(connection)
    resumed('replayed')
    replayedEvents(replayed)
    replaySeconds(elapsedMs / 1000)
    if (absenceMs !== null) absenceSeconds(absenceMs / 1000)
  })
  hub.on('gap', ({ connection, reason, absenceMs }) => {
    gapAnnounced(reason)
    if (returning.delete(connection)) resumed(reason)
    if (absenceMs !== null) absenceSeconds(absenceMs / 1000)
  })
  hub.on('close', ({ connection, reason, durationMs }) => {
    connections -= 1
    ended(reason)
    streamSeconds(durationMs / 1000)
    if (returning.delete(connection)) resumed('left')
  })
  hub.on('publishCall', ({ elapsedMs, error }) => {
    published(error === undefined ? 'ok' : error instanceof RejoinError ? error.code : 'failed')
    publishSeconds(elapsedMs / 1000)
  })
  hub.on('window', smallWindow)
  hub.on('error', requestFailed)
  hub.on('reject', ({ reason }) => rejected(reason))

  return {
    registry,
    rejected,
    reconnected({ attempt, delayMs }) {
      reported(String(attempt))
      reportedDelay(delayMs / 1000)
    },
    answered(endpoint, status) {
      // A client can send any path, so unknown endpoints count as `other`.
      const counts = (responses.get(endpoint) ?? responses.get('other')) as Map<number, number>
      counts.set(status, (counts.get(status) ?? 0) + 1)
    },
  }
}

// Left out: `added`. A reader that adds channels to its subscription causes this gap itself.
const resumeOutcomes = ['replayed', ...gapReasons.filter((reason) => reason !== 'added'), 'left']

const rejectKinds = [
  ...['connections', 'per-ip', 'per-subject', 'too-rapid', 'memory', 'maintenance'],
  ...['unauthorized', 'forbidden', 'origin', 'host', 'ticket', 'preflight', 'drain', 'log-unavailable'],
  ...[
    'publish-rate',
    'body',
    'channels',
    'headers',
    'deadline',
    'malformed',
    'sockets',
    'silent',
    'pipelined',
    'resets',
    'probes',
    'other',
  ],
]

const attempts = ['1', '2', '3', '4', '5', 'more']

const endpoints = [...hubEndpoints, 'log', 'ticket', 'admin', 'metrics', 'healthz', 'readyz']

export function metricsRoute({ registry }: Metrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    open: 'to-admins',
    async handle() {
      return { status: 200, body: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
    },
  }
}

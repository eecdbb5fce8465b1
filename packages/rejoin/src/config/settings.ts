import { longestTimerMs } from '@rejoin/protocol'
import * as v from 'valibot'
import { idFormatNames } from '../id-formats.ts'
import { apiKeys, jwtRules } from './access-schema.ts'
import { choice, json, type Kind, listOf, numberOr, wholeNumber, words, yesOrNo } from './kind.ts'
import { type logKindOf, logLocation, shownLocation } from './log-location.ts'
import { snapshotRules } from './snapshot-schema.ts'
import { channelWindows } from './window-schema.ts'

/** One setting: `limits.maxPerIp` in the file, `--limits-max-per-ip` as a flag, `REJOIN_LIMITS_MAX_PER_IP` as a variable. */
export interface Setting {
  readonly key: string
  readonly kind: Kind
  /** One line, for the help. */
  readonly help: string
  /** The default value. Left out, there is none, or `otherwise` describes it. */
  readonly default?: unknown
  /** The default value for each kind of log. */
  readonly defaultByLog?: Readonly<Record<ReturnType<typeof logKindOf>, unknown>>
  /** Describes the default in words, when it is not one value. */
  readonly otherwise?: string
  /** Whether the value is secret: it is never printed. */
  readonly secret?: true
  /** The printed form of a value that may hold a secret. */
  shown?(text: string): string
  /** The name of the flag, when it does not follow from the key. */
  readonly flag?: string
}

export interface GroupedSetting extends Setting {
  /** The heading of the setting in the help. */
  readonly group: string
}

const positive = wholeNumber(1)
const patterns = 'channels, such as news, orders/* or *'
const durationMs = wholeNumber(1, longestTimerMs)
/** Retry times by channel or pattern. The hub checks the names. */
const channelRetries = v.record(
  v.string(),
  v.union([v.literal('adaptive'), v.pipe(v.number(), v.integer(), v.minValue(500), v.maxValue(60_000))]),
)
const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/

const groups: Readonly<Record<string, readonly Setting[]>> = {
  Server: [
    {
      key: 'port',
      kind: wholeNumber(0, 65_535),
      default: 4747,
      help: 'port to listen on; 0 takes a free port',
    },
    {
      key: 'host',
      kind: words('name', 'a name or an address of this machine'),
      default: '127.0.0.1',
      help: 'name or address to listen on',
    },
    {
      key: 'insecure',
      kind: yesOrNo,
      default: false,
      help: 'let other machines connect although there are no access rules',
    },
    {
      key: 'trustProxy',
      kind: yesOrNo,
      default: false,
      help: 'all requests come through your own proxy: trust its X-Forwarded-For',
    },
    {
      key: 'playground',
      kind: yesOrNo,
      otherwise: 'on if there are no access rules',
      help: 'serve the playground at /',
    },
    {
      key: 'chaos',
      kind: yesOrNo,
      default: false,
      help: 'for tests: take orders for cuts, restarts and more at /chaos; keeps events in memory',
    },
    {
      key: 'logLevel',
      kind: choice('debug', 'info', 'warn', 'error'),
      default: 'info',
      help: 'lowest level of the lines that are printed when the output is not a terminal',
    },
    {
      key: 'drainMs',
      kind: wholeNumber(0, 600_000),
      default: 5000,
      help: 'longest time over which streams are closed when the program stops',
    },
  ],
  Log: [
    {
      key: 'log',
      kind: logLocation,
      default: 'lmdb',
      shown: shownLocation,
      help: 'where events are kept: lmdb, memory, or redis://…',
    },
    {
      key: 'data',
      kind: words('dir', 'a folder'),
      default: './.rejoin',
      help: 'folder of the lmdb log',
    },
    {
      key: 'lockTimeoutMs',
      kind: wholeNumber(0, 600_000),
      default: 10_000,
      help: 'how long to wait for another process that writes to the folder',
    },
    {
      key: 'logPrefix',
      kind: words('name', 'a name without braces and spaces', /^[^{}\s]+$/),
      default: 'rejoin',
      help: 'name of the log in Redis; hubs with the same name share the log',
    },
    {
      key: 'logMaxBytes',
      kind: positive,
      otherwise: 'none',
      help: 'most bytes that all channels keep together; beyond them, the oldest events are removed',
    },
    {
      key: 'durability',
      kind: choice('disk', 'os', 'replicated', 'server'),
      defaultByLog: { lmdb: 'disk', memory: 'memory', redis: 'server' },
      help: 'where an event is stored before its publish is answered',
    },
    {
      key: 'replicas',
      kind: positive,
      default: 1,
      help: 'replicas of Redis that durability replicated waits for',
    },
    {
      key: 'ids',
      kind: choice(...idFormatNames),
      otherwise: 'ulid for a new log; an existing log keeps its format',
      help: 'format of event ids in a new log; `rejoin migrate ids` changes it',
    },
    {
      key: 'window.maxEvents',
      kind: positive,
      defaultByLog: { lmdb: 10_000, memory: 1000, redis: 1000 },
      help: 'most events that each channel keeps',
    },
    {
      key: 'window.maxAgeMs',
      kind: positive,
      defaultByLog: { lmdb: 86_400_000, memory: 300_000, redis: 3_600_000 },
      help: 'age at which an event is removed',
    },
    {
      key: 'window.maxBytes',
      kind: positive,
      defaultByLog: { lmdb: 67_108_864, memory: 16_777_216, redis: 16_777_216 },
      help: 'most bytes of types and data that each channel keeps',
    },
    {
      key: 'windows',
      kind: json(channelWindows, 'windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}'),
      otherwise: 'none',
      help: 'other windows for some channels; the narrowest pattern applies',
    },
    {
      key: 'retain',
      kind: listOf('pattern', patterns),
      otherwise: 'none',
      help: 'channels that keep their newest value, even when their window has removed it',
    },
    {
      key: 'fromStart',
      kind: listOf('pattern', patterns),
      otherwise: 'none',
      help: 'channels that readers without a cursor read from their beginning',
    },
    {
      key: 'maxTailSilenceMs',
      kind: positive,
      default: 10_000,
      help: 'how long Redis may be silent before readers are sent to other hubs',
    },
    {
      key: 'whenDown',
      kind: choice('reject', 'local'),
      default: 'reject',
      help: 'what happens to publishes while Redis is away',
    },
  ],
  Streams: [
    {
      key: 'heartbeatMs',
      kind: durationMs,
      default: 25_000,
      help: 'longest silence on a stream before a heartbeat is sent',
    },
    {
      key: 'defaultChannel',
      kind: words('name', 'the name of a channel'),
      otherwise: 'none: such requests are rejected',
      help: 'channel of requests that name no channel: GET /stream, POST /publish',
    },
    {
      key: 'retryMs',
      kind: numberOr('adaptive', 500, 60_000),
      default: 2000,
      help: 'how long readers wait before they return, or adaptive',
    },
    {
      key: 'retries',
      kind: json(channelRetries, 'times by channel or pattern, 500 to 60000, such as {"prices/*": 500}'),
      otherwise: 'none',
      help: 'other retry times for some channels; the narrowest pattern applies',
    },
    {
      key: 'snapshots',
      kind: json(
        snapshotRules,
        'rules by channel or pattern, such as {"orders/*": {"webhook": "http://127.0.0.1:3000/state"}}',
      ),
      otherwise: 'none',
      // A rule can hold the credentials of a webhook.
      secret: true,
      help: 'where readers that lost events get the state of their channels',
    },
    {
      key: 'stallTimeoutMs',
      kind: durationMs,
      default: 60_000,
      help: 'how long a slow reader may read nothing before its stream is closed',
    },
    {
      key: 'hotBytes',
      kind: positive,
      default: 16_777_216,
      help: 'bytes of memory for the newest events of all channels',
    },
    {
      key: 'sinkBudgetBytes',
      kind: positive,
      default: 65_536,
      help: 'bytes that may wait for one reader before it is served from the log',
    },
    {
      key: 'maxReplayEvents',
      kind: positive,
      otherwise: 'no limit',
      help: 'most events that are replayed to a returning reader',
    },
    {
      key: 'maxReplayAgeMs',
      kind: positive,
      otherwise: 'no limit',
      help: 'age of the oldest event that is replayed to a returning reader',
    },
  ],
  Limits: [
    {
      key: 'limits.maxConnections',
      kind: positive,
      otherwise: 'no limit',
      help: 'most streams open at once',
    },
    {
      key: 'limits.maxPerIp',
      kind: positive,
      otherwise: 'no limit',
      help: 'most streams open at once from one address, or from one /64 of IPv6',
    },
    {
      key: 'limits.maxPerSubject',
      kind: positive,
      otherwise: 'no limit',
      help: 'most streams open at once for one subject',
    },
    {
      key: 'limits.maxRapidReturns',
      kind: positive,
      default: 10,
      help: 'most returns in a row that one client may make well before its retry time',
    },
    {
      key: 'limits.maxOpensPer10s',
      kind: positive,
      otherwise: 'no limit',
      help: 'most streams that one address may open in ten seconds',
    },
    {
      key: 'limits.maxStreamBytes',
      kind: positive,
      default: 33_554_432,
      help: 'most bytes of streams in memory that slow readers have not read yet',
    },
    {
      key: 'limits.maxAnswerBytes',
      kind: positive,
      default: 33_554_432,
      help: 'most bytes of poll answers in memory',
    },
    {
      key: 'limits.maxIncomingBytes',
      kind: positive,
      default: 33_554_432,
      help: 'most bytes of publish bodies in memory',
    },
    {
      key: 'limits.maxChannels',
      kind: wholeNumber(1, 100),
      default: 100,
      help: 'most channels that one stream may subscribe to',
    },
    {
      key: 'limits.maxPublishesPerSecond',
      kind: positive,
      otherwise: 'no limit',
      help: 'most publish requests per second of one subject, or of one address without a subject',
    },
    {
      key: 'limits.publishBurst',
      kind: positive,
      otherwise: 'limits.maxPublishesPerSecond',
      help: 'most publish requests at once after a pause',
    },
    {
      key: 'limits.maxBodyBytes',
      kind: wholeNumber(1, 262_144),
      default: 262_144,
      help: 'largest body of one publish, in bytes',
    },
    {
      key: 'limits.headersTimeoutMs',
      kind: durationMs,
      default: 10_000,
      help: 'how long the head of a request may take to arrive',
    },
    {
      key: 'limits.requestTimeoutMs',
      kind: durationMs,
      default: 30_000,
      help: 'how long a whole request may take to arrive',
    },
    {
      key: 'limits.maxSilentPerIp',
      kind: positive,
      otherwise: '1000, no limit with trustProxy',
      help: 'most connections of one address, or of one /64 of IPv6, without a request so far',
    },
    {
      key: 'limits.maxSocketsPerIp',
      kind: positive,
      otherwise: 'three quarters of all connections, no limit with trustProxy',
      help: 'most open connections of one address, or of one /64 of IPv6',
    },
  ],
  TLS: [
    {
      key: 'tls.cert',
      kind: words('file', 'a PEM file with the certificate and its chain'),
      otherwise: 'no TLS',
      help: 'certificate and its chain; the file is read again when it changes',
    },
    {
      key: 'tls.key',
      kind: words('file', 'a PEM file with the private key'),
      otherwise: 'no TLS',
      help: 'private key of the certificate',
    },
    {
      key: 'tls.http2',
      kind: yesOrNo,
      default: true,
      help: 'speak HTTP/2 over TLS with clients that support it',
    },
  ],
  Access: [
    {
      key: 'access.jwt',
      kind: json(jwtRules, 'a list of rules, such as [{"secret": "…"}]'),
      otherwise: 'no token is accepted',
      secret: true,
      help: 'rules for the tokens that the hub accepts',
    },
    {
      key: 'access.keys',
      kind: json(apiKeys, 'a list of keys, such as [{"name": "shop", "sha256": "…", "publish": ["orders/*"]}]'),
      otherwise: 'none',
      // A wrong value may be the key itself, written where its hash belongs.
      shown: () => 'not shown, because it may hold a key',
      help: 'API keys, each by its SHA-256, and the rights of each',
    },
    {
      key: 'access.anonymous.subscribe',
      kind: listOf('pattern', patterns),
      otherwise: 'none',
      help: 'channels that everybody may read',
    },
    {
      key: 'access.anonymous.publish',
      kind: listOf('pattern', patterns),
      otherwise: 'none',
      help: 'channels that everybody may publish to',
    },
    {
      key: 'access.cookie',
      kind: words('name', 'the name of a cookie'),
      otherwise: 'cookies are not read',
      help: 'name of a cookie that may hold the token',
    },
    {
      key: 'access.cors',
      flag: 'cors-origin',
      kind: listOf('origin', 'origins, such as https://app.example.com'),
      otherwise: 'only pages of the hub itself',
      help: 'origin whose pages may use the hub',
    },
    {
      key: 'access.hosts',
      flag: 'allowed-host',
      kind: listOf('name', 'names of hosts without a port, such as hub.example.com'),
      otherwise: 'any name',
      help: 'host name that requests may use for the hub',
    },
    {
      key: 'access.ticketMs',
      kind: wholeNumber(1000, 60_000),
      default: 30_000,
      help: 'how long a ticket can be used',
    },
  ],
  Admin: [
    {
      key: 'admin.token',
      kind: words('token', 'at least 16 characters, none of them a space', /^\S{16,}$/),
      otherwise: 'none',
      secret: true,
      help: 'token for the admin API and /metrics',
    },
    {
      key: 'admin.port',
      kind: wholeNumber(0, 65_535),
      otherwise: 'none',
      help: 'port of the admin API and /metrics, for this machine only; asks for a token only if admin.token is set',
    },
    {
      key: 'metrics',
      kind: yesOrNo,
      default: true,
      help: 'serve metrics at /metrics to admins',
    },
  ],
  Sources: [
    {
      key: 'mdns.enabled',
      flag: 'mdns',
      kind: yesOrNo,
      default: false,
      help: 'follow the services of the local network, and serve them below /v1/mdns/',
    },
    {
      key: 'mdns.interface',
      kind: words('address', 'an IPv4 address of this machine', ipv4),
      otherwise: 'all interfaces; the system chooses one for queries',
      help: 'address of the network interface on which to look for services',
    },
    {
      key: 'mdns.maxEvents',
      kind: positive,
      default: 1000,
      help: 'most events that are kept of each service type',
    },
    {
      key: 'mdns.maxAgeMs',
      kind: positive,
      default: 60_000,
      help: 'age at which an event about a service is removed',
    },
  ],
}

/** All settings, in the order in which the help and `rejoin config` show them. */
export const settings: readonly GroupedSetting[] = Object.entries(groups).flatMap(([group, members]) =>
  members.map((setting) => ({ ...setting, group })),
)

/** Whether a setting has a flag. Secrets have none: all users of a machine can see the flags in its list of processes. */
export function hasFlag({ kind, secret }: Setting): boolean {
  return !secret && kind.argument !== 'json'
}

/** The name of the flag, without the leading dashes. */
export function flagOf({ key, flag }: Setting): string {
  return flag ?? key.replaceAll('.', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

export function variableOf(setting: Setting): string {
  return `REJOIN_${flagOf(setting).replaceAll('-', '_').toUpperCase()}`
}

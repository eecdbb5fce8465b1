import { longestTimerMs } from '@rejoin/protocol'
import { idFormatNames } from '../id-formats.ts'
import { apiKeys, jwtRules } from './access-schema.ts'
import { choice, json, type Kind, listOf, numberOr, wholeNumber, words, yesOrNo } from './kind.ts'
import { type logKindOf, logLocation, shownLocation } from './log-location.ts'
import { channelRetries } from './retry-schema.ts'
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
const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/

const groups: Readonly<Record<string, readonly Setting[]>> = {
  Server: [
    {
      key: 'port',
      kind: wholeNumber(0, 65_535),
      default: 4747,
      help: 'port to listen on; 0 takes a free one',
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
      help: 'listen beyond this machine although there are no access rules',
    },
    {
      key: 'trustProxy',
      kind: yesOrNo,
      default: false,
      help: 'requests come through a proxy of yours: believe its X-Forwarded-For',
    },
    {
      key: 'playground',
      kind: yesOrNo,
      otherwise: 'where there are no access rules',
      help: 'serve the playground at /',
    },
    {
      key: 'chaos',
      kind: yesOrNo,
      default: false,
      help: 'for tests: cuts, restarts and more to order at /chaos; events are kept in memory',
    },
    {
      key: 'logLevel',
      kind: choice('debug', 'info', 'warn', 'error'),
      default: 'info',
      help: 'which lines are printed where no terminal is attached',
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
      key: 'logPrefix',
      kind: words('name', 'a name without braces and spaces', /^[^{}\s]+$/),
      default: 'rejoin',
      help: 'under which name the log is kept in Redis; hubs with the same one share it',
    },
    {
      key: 'logMaxBytes',
      kind: positive,
      otherwise: 'none',
      help: 'bytes that all channels keep together; beyond that the oldest events of all channels go first',
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
      otherwise: 'ulid for a new log; another one keeps what it has',
      help: 'how a new log writes event ids; `rejoin migrate ids` changes it',
    },
    {
      key: 'window.maxEvents',
      kind: positive,
      defaultByLog: { lmdb: 10_000, memory: 1000, redis: 1000 },
      help: 'events that each channel keeps',
    },
    {
      key: 'window.maxAgeMs',
      kind: positive,
      defaultByLog: { lmdb: 86_400_000, memory: 300_000, redis: 3_600_000 },
      help: 'age at which an event is let go',
    },
    {
      key: 'window.maxBytes',
      kind: positive,
      defaultByLog: { lmdb: 67_108_864, memory: 16_777_216, redis: 16_777_216 },
      help: 'bytes that each channel keeps: types and data',
    },
    {
      key: 'windows',
      kind: json(channelWindows, 'windows by channel or pattern, such as {"prices/*": {"maxEvents": 10}}'),
      otherwise: 'none',
      help: 'other windows for some channels; the narrowest name counts',
    },
    {
      key: 'retain',
      kind: listOf('pattern', patterns),
      otherwise: 'none',
      help: 'channels that keep their newest value, whatever their window lets go of',
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
      help: 'how long Redis may not be heard before readers are sent elsewhere',
    },
    {
      key: 'whenDown',
      kind: choice('reject', 'local'),
      default: 'reject',
      help: 'what becomes of publishes while Redis is away',
    },
  ],
  Streams: [
    {
      key: 'heartbeatMs',
      kind: durationMs,
      default: 25_000,
      help: 'longest silence on a stream',
    },
    {
      key: 'defaultChannel',
      kind: words('name', 'the name of a channel'),
      otherwise: 'none: such requests are rejected',
      help: 'channel of requests that name none: GET /stream, POST /publish',
    },
    {
      key: 'retryMs',
      kind: numberOr('adaptive', 500, 60_000),
      default: 2000,
      help: 'how long readers wait before they come back',
    },
    {
      key: 'retries',
      kind: json(channelRetries, 'times by channel or pattern, 500 to 60000, such as {"prices/*": 500}'),
      otherwise: 'none',
      help: 'other times for some channels; the narrowest name counts',
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
      kind: wholeNumber(1, longestTimerMs),
      default: 16_777_216,
      help: 'memory for the newest events of all channels',
    },
    {
      key: 'sinkBudgetBytes',
      kind: wholeNumber(1, longestTimerMs),
      default: 65_536,
      help: 'bytes that may wait for one reader before it is served from the log',
    },
    {
      key: 'maxReplayEvents',
      kind: positive,
      otherwise: 'no limit',
      help: 'most events that one return may replay',
    },
    {
      key: 'maxReplayAgeMs',
      kind: positive,
      otherwise: 'no limit',
      help: 'oldest event that a return may start with',
    },
  ],
  Limits: [
    {
      key: 'limits.maxConnections',
      kind: positive,
      otherwise: 'no limit',
      help: 'streams open at once',
    },
    {
      key: 'limits.maxPerIp',
      kind: positive,
      otherwise: 'no limit',
      help: 'streams open at once from one address, or from one /64',
    },
    {
      key: 'limits.maxPerSubject',
      kind: positive,
      otherwise: 'no limit',
      help: 'streams open at once for one subject',
    },
    {
      key: 'limits.maxRapidReturns',
      kind: positive,
      default: 10,
      help: 'returns in a row of one client well before its retry time',
    },
    {
      key: 'limits.maxOpensPer10s',
      kind: positive,
      otherwise: 'no limit',
      help: 'streams that one address may open in ten seconds',
    },
    {
      key: 'limits.maxStreamBytes',
      kind: positive,
      default: 33_554_432,
      help: 'bytes of streams that slow readers have not taken, in memory at once',
    },
    {
      key: 'limits.maxAnswerBytes',
      kind: positive,
      default: 33_554_432,
      help: 'bytes of poll answers in memory at once',
    },
    {
      key: 'limits.maxIncomingBytes',
      kind: positive,
      default: 33_554_432,
      help: 'bytes of publish bodies in memory at once',
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
      help: 'publish requests of one subject, or else of one address',
    },
    {
      key: 'limits.publishBurst',
      kind: positive,
      otherwise: 'as many as in a second',
      help: 'publish requests that may come at once',
    },
    {
      key: 'limits.maxBodyBytes',
      kind: wholeNumber(1, 262_144),
      default: 262_144,
      help: 'bytes of one publish',
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
      help: 'connections of one address, or of one /64, that have not sent a request yet',
    },
  ],
  TLS: [
    {
      key: 'tls.cert',
      kind: words('file', 'a PEM file with the certificate and its chain'),
      otherwise: 'no TLS',
      help: 'certificate and its chain; read again when it changes',
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
      help: 'speak HTTP/2 with those who can, over TLS',
    },
  ],
  Access: [
    {
      key: 'access.jwt',
      kind: json(jwtRules, 'a list of rules, such as [{"secret": "…"}]'),
      otherwise: 'no token is believed',
      secret: true,
      help: 'whose tokens are believed',
    },
    {
      key: 'access.keys',
      kind: json(apiKeys, 'a list of keys, such as [{"name": "shop", "sha256": "…", "publish": ["orders/*"]}]'),
      otherwise: 'none',
      // A wrong value may be the key itself, written where its hash belongs.
      shown: () => 'not shown, because it may hold a key',
      help: 'API keys, by their SHA-256, and what they may do',
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
      help: 'cookie in which a token may come',
    },
    {
      key: 'access.cors',
      flag: 'cors-origin',
      kind: listOf('origin', 'origins, such as https://app.example.com'),
      otherwise: 'only pages of its own',
      help: 'origin whose pages may use the hub',
    },
    {
      key: 'access.hosts',
      flag: 'allowed-host',
      kind: listOf('name', 'names of hosts without a port, such as hub.example.com'),
      otherwise: 'any name',
      help: 'name under which the hub may be addressed',
    },
    {
      key: 'access.ticketMs',
      kind: wholeNumber(1000, 60_000),
      default: 30_000,
      help: 'for how long a ticket can be used',
    },
  ],
  Admin: [
    {
      key: 'admin.token',
      kind: words('token', 'at least 16 characters, none of them a space', /^\S{16,}$/),
      otherwise: 'none',
      secret: true,
      help: 'what opens the admin API and /metrics',
    },
    {
      key: 'admin.port',
      kind: wholeNumber(0, 65_535),
      otherwise: 'none',
      help: 'port of this machine alone for the admin API and /metrics, without a token',
    },
    {
      key: 'metrics',
      kind: yesOrNo,
      default: true,
      help: 'serve metrics at /metrics, where an admin token or port is set',
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
      otherwise: "all of them, and the system's own choice for queries",
      help: 'network interface to look for services on, by its address',
    },
    {
      key: 'mdns.maxEvents',
      kind: positive,
      default: 1000,
      help: 'events that are kept of each service type',
    },
    {
      key: 'mdns.maxAgeMs',
      kind: positive,
      default: 60_000,
      help: 'age at which such an event is let go',
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

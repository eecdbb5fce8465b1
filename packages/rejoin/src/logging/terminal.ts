import type { WindowOptions } from '@rejoin/hub'
import { causeText, createLineRation, plainText } from '@rejoin/hub/internal'
import type { RejectedRequest } from '@rejoin/hub/operations'
import type { GapReason } from '@rejoin/protocol'
import { durationWords, exactDuration } from './duration.ts'
import { insecureWarning, type Logging } from './logging.ts'
import { type Style, styled } from './style.ts'
import { table } from './table.ts'

/** Lines for a person: first how to begin, then a line for every reader that returned or was rejected. */
export function terminal({ write, colour, now }: Terminal): Logging {
  const rejections = createLineRation(({ requests }) => say(`${style('yellow', 'rejected')} ${requests} more requests`))

  function rejected({ channels, reason, status, ip, action, origin }: RejectedRequest): void {
    const from = [
      ...(ip === null ? [] : [`from ${plainText(ip)}`]),
      ...(origin ? [`for a page of ${plainText(origin)}`] : []),
    ]
    const what = [...(action ? [action] : []), ...(channels.length > 0 ? [some(channels)] : []), ...from].join(' ')
    if (rejections.take('requests')) say(`${style('yellow', 'rejected')} ${what}, ${status}: ${reason}`)
  }

  return {
    ready({ version, url, adminUrl, log, folder, address, loopbackOnly, access }) {
      const rows = [
        ['log', [`${log.name}${whereWords(folder, address)}`, windowWords(log.window)].join(', ')],
        ['open to', openTo(loopbackOnly, access)],
        ...adminRows(adminUrl),
        [],
        ['look', `${url}/`],
        ['watch', `curl -N ${url}/events/demo`],
        ['publish', `curl -d hello ${url}/publish/demo`],
        ['return', `curl -N -H 'Last-Event-ID: <id you saw>' ${url}/events/demo`],
      ]
      const lines = [
        '',
        `  ${style('bold', `Rejoin ${version}`)}  ${style('cyan', url)}`,
        '',
        ...table(rows.map(([name = '', text = '']) => [style('dim', name), text])).map((line) => `  ${line}`.trimEnd()),
        '',
      ]
      if (!loopbackOnly && !access) lines.push(style('red', `  ${insecureWarning}`), '')
      write(`${lines.join('\n')}\n`)
    },

    watch(hub) {
      hub.on('replay', ({ connection, channels, replayed, elapsedMs }) => {
        const reader = `${some(channels)} ${connection}`
        say(`${style('green', 'rejoined')} ${reader}, ${replayed} replayed in ${durationWords(elapsedMs)}`)
      })
      hub.on('gap', ({ connection, channels, reason }) => {
        say(`${style('yellow', 'gap')} ${some(channels)} ${connection}, told to reload: ${gapWords[reason]}`)
      })
      hub.on('window', ({ channel, absenceMs, needs }) => {
        const away = durationWords(absenceMs)
        const need = `keep ${needs.maxEvents} events and ${durationWords(needs.maxAgeMs)}`
        say(`${style('yellow', 'window')} ${some([channel])} is small: readers are away for up to ${away}, ${need}`)
      })
      hub.on('reject', rejected)
      hub.on('close', ({ connection, channels, reason, cause, unfinished }) => {
        if (unfinished) {
          const what = `${unfinished.replayed} replayed, not caught up: ${reason}`
          say(`${style('yellow', 'left')} ${some(channels)} ${connection}, ${what}`)
        }
        if (cause) say(`${style('red', 'failed')} ${some(channels)} ${connection}, ${reason}: ${causeText(cause)}`)
      })
      hub.on('silence', ({ silentMs, cause, local }) => {
        const what = local ? 'readers are served without it' : 'readers are sent elsewhere'
        if (cause) say(`${style('red', 'lost')} the log; ${what}. ${causeText(cause)}`)
        else say(`${style('red', 'silent')} log for ${durationWords(silentMs)}; ${what}`)
      })
      hub.on('local', ({ channel, id }) => {
        say(`${style('yellow', 'local')} ${some([channel])} ${id}, to the readers here alone: the log is away`)
      })
      hub.on('healed', ({ channels }) => {
        const told =
          channels.length > 0 ? `told to reload: readers of ${some(channels)}` : 'nothing was published meanwhile'
        say(`${style('green', 'healed')} the log is back; ${told}`)
      })
      hub.on('error', ({ cause }) => say(`${style('red', 'failed')} to answer a request: ${causeText(cause)}`))
    },

    rejected,

    // No line: the person at this terminal has already seen the reader return.
    reconnected: () => undefined,

    administered({ action, target }) {
      say(`${style('cyan', 'admin')} ${action}${target === undefined ? '' : ` ${plainText(target)}`}`)
    },

    certificate({ cause }) {
      if (cause === undefined) say('the certificate was read again')
      else say(`${style('yellow', 'kept')} the old certificate: ${causeText(cause)}`)
    },

    warned: (message) => say(`${style('yellow', 'warning')} ${plainText(message, 1000)}`),

    stopping(signal) {
      rejections.flush()
      say(`${signal}: closing streams. Send it again to end at once.`)
    },

    failed(cause) {
      rejections.flush()
      say(
        `${style('red', 'failed')} and ends: ${cause instanceof Error && cause.stack ? cause.stack : causeText(cause)}`,
      )
    },

    ended: rejections.flush,
  }

  function openTo(loopbackOnly: boolean, access: boolean): string {
    if (access) return loopbackOnly ? 'this machine, by the access rules' : 'those whom the access rules let in'
    return loopbackOnly ? 'this machine only' : style('red', 'everyone who can reach this address')
  }

  function say(text: string): void {
    write(`${style('dim', new Date(now()).toTimeString().slice(0, 8))} ${text}\n`)
  }

  function style(format: Style, text: string): string {
    return styled(format, text, colour)
  }
}

export interface Terminal {
  write(text: string): unknown
  /** Whether to use ANSI colours. */
  colour: boolean
  now(): number
}

const gapWords: Record<GapReason, string> = {
  expired: 'what it missed is out of the window',
  'unknown-id': 'its last id is not an id',
  version: 'its last id is of another format',
  epoch: 'its last id is of an earlier log',
  ahead: 'its last id is past the end of the log',
  'replay-limit': 'it missed more than is replayed',
  forced: 'the events of the channel were invalidated',
  added: 'the channel is new to its subscription',
}

function adminRows(adminUrl: string | undefined): string[][] {
  if (adminUrl === undefined) return []
  return [
    ['admin', `${adminUrl}/openapi.json`],
    ['dashboard', `${adminUrl}/dashboard`],
  ]
}

function whereWords(folder: string | undefined, address: string | undefined): string {
  if (folder) return ` in ${folder}`
  return address ? ` at ${address}` : ''
}

/** The first three channels: a reader may have many, and a line has little room. */
function some(channels: readonly string[]): string {
  const shown = channels
    .slice(0, 3)
    .map((name) => plainText(name))
    .join(', ')
  return channels.length > 3 ? `${shown} and ${channels.length - 3} more` : shown
}

/** A window as a person would say it: "the last 1,000 events or 5 minutes of each channel". */
export function windowWords({ maxEvents, maxAgeMs, maxBytes }: WindowOptions): string {
  const bounds: string[] = []
  if (isBound(maxEvents)) bounds.push(`${maxEvents.toLocaleString('en')} ${maxEvents === 1 ? 'event' : 'events'}`)
  if (isBound(maxAgeMs)) bounds.push(exactDuration(maxAgeMs))
  if (isBound(maxBytes)) bounds.push(size(maxBytes))
  return bounds.length === 0 ? 'everything' : `the last ${either.format(bounds)} of each channel`
}

const either = new Intl.ListFormat('en-GB', { type: 'disjunction' })

function isBound(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value)
}

function size(bytes: number): string {
  const [unitBytes, unit] = sizes.find(([unitBytes]) => bytes % unitBytes === 0) ?? [1, 'bytes']
  return `${(bytes / unitBytes).toLocaleString('en')} ${unit}`
}

const sizes: [number, string][] = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
]

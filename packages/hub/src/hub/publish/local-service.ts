import { createClock, createEpoch, type Epoch, isAfter, origin, type Position, RejoinError } from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import type { Log, LogEvent, NewEvent } from '../../log/contract.ts'
import { encodeFrame, type Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'

/**
 * Publishing while the log is away, for those who would rather have news now than all of it. What is published then goes to
 * the readers of this hub only and is kept nowhere. Its ids are of an epoch that no log knows, so a reader that comes back with one
 * is told of a gap. Readers that got such an event are told before they get anything else of the log: see `Live.say`. When
 * the log is back, every channel that was served like this is invalidated, so that the others are told as well.
 */
export interface LocalService {
  /** Whether events are published past the log now. */
  readonly isOpen: boolean
  /** The log has rejected a publish: from now on, until it is back and everybody is told, events go to this hub's readers alone. */
  open(): void
  /** Hands events to the readers that are here, and gives their ids. */
  publish(entries: readonly NewEvent[]): readonly LocalEvent[]
  stop(): void
}

export interface LocalEvent {
  readonly id: string
  readonly at: number
}

export interface LocalServiceOptions {
  readonly log: Pick<Log, 'formats' | 'probe' | 'invalidate'>
  readonly live: Live
  /** Resolves when the readers here have what was appended there. */
  reached(position: Position): Promise<void>
  readonly environment: Environment
  /** The log is back, and these channels have been invalidated. */
  onHealed(channels: readonly string[]): void
}

const tryEveryMs = 1000

export function createLocalService({ log, live, environment, reached, onHealed }: LocalServiceOptions): LocalService {
  let epoch: Epoch | undefined
  let clock = newClock()
  /** Served past the log, and not told about it yet. */
  let served = new Set<string>()
  let cancel: Cancel = () => undefined
  let stopped = false

  function newClock() {
    return createClock({ ...log.formats.range, now: environment.now, last: live.head })
  }

  function nextPosition(): Position {
    if (isAfter(live.head, clock.last)) clock = newClock()
    return clock.next()
  }

  function scheduleTry(): void {
    if (stopped) return
    cancel = environment.after(tryEveryMs, () => void tryToClose().then(undefined, scheduleTry))
  }

  /** Rejects while the log is away; what was told by then need not be told again. */
  async function tryToClose(): Promise<void> {
    await log.probe()
    const told: string[] = []
    // What is published meanwhile goes past the log as well, and is told about in the next round.
    while (served.size > 0) {
      const channels = served
      served = new Set()
      try {
        for (const channel of channels) {
          const { position } = await log.invalidate(channel)
          await reached(position)
          channels.delete(channel)
          told.push(channel)
        }
      } catch (error) {
        for (const channel of channels) served.add(channel)
        throw error
      }
    }
    epoch = undefined
    onHealed(told)
  }

  return {
    get isOpen() {
      return epoch !== undefined
    },
    open() {
      if (epoch !== undefined) return
      epoch = createEpoch(environment.random)
      scheduleTry()
    },
    publish(entries) {
      if (epoch === undefined) throw new RejoinError('The log is there; publish to it.', { code: 'internal' })
      const branch = { epoch, number: 0, first: origin }
      const at = environment.now()
      const frames: Frame[] = []
      const events = entries.map((entry) => {
        const position = nextPosition()
        const id = log.formats.encode(position, branch)
        const event: LogEvent = { kind: 'live', ...entry, position, at, previous: origin }
        frames.push(encodeFrame(event, id))
        served.add(entry.channel)
        return { id, at }
      })
      live.say(frames)
      return events
    },
    stop() {
      stopped = true
      cancel()
    },
  }
}

import {
  createEpoch,
  createPositionClock,
  type Epoch,
  isAfter,
  origin,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import type { Log, LogEvent, NewEvent } from '../../log/contract.ts'
import { encodeFrame, type Frame } from '../live/frame.ts'
import type { Live } from '../live/live.ts'

/**
 * Publishes without the log while it is away, for programs that prefer some events now to all events later. Such an event goes to
 * the readers of this hub only, and is kept nowhere. Its id has an epoch that no log knows, so a reader that returns with it is
 * told of a gap. A reader that is still here is told before it gets another event of the log: see `Live.say`. When the log is
 * back, every channel that was served like this is invalidated, so that all other readers are told too.
 */
export interface LocalService {
  /** Whether events are published without the log now. */
  readonly isOpen: boolean
  /** The log is away. Events go to the readers of this hub alone, until the log is back and all readers are told. */
  open(): void
  /** Writes events to the live readers of this hub. */
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
  /** Resolves when the readers here have everything up to this position. */
  reached(position: Position): Promise<void>
  readonly environment: Environment
  /** The log is back, and these channels have been invalidated. */
  onHealed(channels: readonly string[]): void
}

const tryEveryMs = 1000

export function createLocalService({ log, live, environment, reached, onHealed }: LocalServiceOptions): LocalService {
  let epoch: Epoch | undefined
  let clock = newClock()
  /** Channels that were served without the log and have yet to be invalidated. */
  let served = new Set<string>()
  let cancel: Cancel = () => undefined
  let stopped = false

  function newClock() {
    return createPositionClock({ ...log.formats.range, now: environment.now, last: live.head.position })
  }

  function nextPosition(): Position {
    if (isAfter(live.head.position, clock.last)) clock = newClock()
    return clock.next()
  }

  function scheduleTry(): void {
    if (stopped) return
    cancel = environment.after(tryEveryMs, () => void tryToClose().then(undefined, scheduleTry))
  }

  /** Rejects while the log is away. Channels that were invalidated before that stay invalidated. */
  async function tryToClose(): Promise<void> {
    await log.probe()
    const told: string[] = []
    // Events that are published meanwhile do not go to the log either. The next round invalidates their channels.
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

import { createRandom } from '@rejoin/hub/testing'
import { programWindow, startProgram } from '../../support/program.ts'
import { type Spread, spreadOf } from '../checker/tally.ts'
import { type CrowdOptions, openCrowd } from '../crowds/crowd.ts'
import { watchedHistory } from '../history/watched.ts'
import { type LastingHub, openLastingHub } from '../hubs/lasting-hub.ts'
import { throughHttp } from '../recorders/recorders.ts'

/**
 * Kills `rejoin serve` by SIGKILL again and again, each time after a while, and starts it anew on what it left behind. The
 * publisher sends what got no answer again, under the same key, until it gets one.
 */
export async function runKills(options: KillsOptions): Promise<KillsOutcome> {
  const { seed, cycles, readers, eventsPerSecond, betweenMs, directory, onProgress } = options
  const random = createRandom(seed)
  const clock = createRestartClock()
  let whileStopping = 0
  const history = watchedHistory(options.history, clock.see)
  history.write({ kind: 'run', name: 'kills', seed, inputs: { cycles, readers, eventsPerSecond, betweenMs } })
  const hub = await openLastingHub({ random, start: (port) => startProgram({ directory, port }) })
  try {
    await options.prepare?.(hub)
    const crowd = openCrowd({
      ...options,
      ...{ history, window: programWindow, channels: killChannels, channelsOf: twoOf(killChannels) },
      ...{ originOf: () => hub.origin, send: throughHttp(hub.origin, 5000), resends: 1000, resendAfterMs: 50 },
    })
    await crowd.renewed()
    for (let cycle = 1; cycle <= cycles; cycle += 1) {
      await new Promise((resolve) => setTimeout(resolve, betweenMs[0] + random() * (betweenMs[1] - betweenMs[0])))
      history.write({
        kind: 'fault',
        what: options.whileStoppingMs ? 'SIGTERM, and kill -9 while it stops' : 'kill -9',
      })
      if (!options.whileStoppingMs) await hub.kill()
      else if (await hub.killWhileStopping(random() * options.whileStoppingMs)) whileStopping += 1
      clock.restart()
      await hub.start()
      clock.listening()
      history.write({ kind: 'heal' })
      onProgress?.(cycle)
    }
    await crowd.finish()
    await hub.stop()
  } finally {
    await hub.abandon()
  }
  return { ...clock.outcome(), whileStopping }
}

export interface KillsOptions
  extends Omit<CrowdOptions, 'window' | 'channels' | 'channelsOf' | 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly seed: number
  readonly cycles: number
  /** The hub lives for at least the first and at most the second, in ms. */
  readonly betweenMs: readonly [number, number]
  /**
   * Asks the hub to end in order first, and kills it at most so many ms later.
   * @defaultValue 0, it is not asked
   */
  readonly whileStoppingMs?: number
  readonly directory: string
  /** Done with the new hub before anybody reads. */
  prepare?(hub: LastingHub): Promise<void>
  onProgress?(cycle: number): void
}

/** Times are from the start of the new process, in ms. */
export interface KillsOutcome {
  /** From the first kill to the last, times without a hub included. */
  readonly acknowledgedPerSecond: number
  /** Until it took connections. */
  readonly listeningMs: Spread | undefined
  /** Until it had acknowledged an event. */
  readonly acknowledgedMs: Spread | undefined
  /** Until a reader that had come back had an event. */
  readonly receivedMs: Spread | undefined
  /** How many of the kills fell into an end in order. */
  readonly whileStopping: number
}

// With 500 events/s, a publish may take 50 ms before its channel falls behind.
const killChannels = Array.from({ length: 25 }, (_, index) => `orders/${index}`)

/** Each reader has two channels: with all of them, a hundred would get more than one process can take and write down. */
function twoOf(channels: readonly string[]): (index: number) => readonly string[] {
  return (index) =>
    [0, 1 + (index % (channels.length - 1))].map((step) => channels[(index + step) % channels.length] as string)
}

function createRestartClock() {
  const listeningMs: number[] = []
  const acknowledgedMs: number[] = []
  const receivedMs: number[] = []
  const opened = new Set<string>()
  let startedAt: number | undefined
  let acknowledged = true
  let received = true
  let count = 0
  let from: { at: number; count: number } | undefined
  let through: { at: number; count: number } | undefined
  const sinceStart = () => performance.now() - (startedAt as number)

  return {
    restart(): void {
      startedAt = performance.now()
      through = { at: startedAt, count }
      from ??= through
      acknowledged = false
      received = false
      opened.clear()
    },
    listening: (): void => void listeningMs.push(sinceStart()),
    see(line: { kind: string; who?: string }): void {
      if (line.kind === 'ok') count += 1
      if (line.kind === 'open') opened.add(line.who as string)
      else if (line.kind === 'ok' && !acknowledged) {
        acknowledged = true
        acknowledgedMs.push(sinceStart())
      } else if (line.kind === 'recv' && !received && opened.has(line.who as string)) {
        received = true
        receivedMs.push(sinceStart())
      }
    },
    outcome: (): Omit<KillsOutcome, 'whileStopping'> => ({
      acknowledgedPerSecond: from && through ? (1000 * (through.count - from.count)) / (through.at - from.at) : 0,
      listeningMs: spreadOf(listeningMs),
      acknowledgedMs: spreadOf(acknowledgedMs),
      receivedMs: spreadOf(receivedMs),
    }),
  }
}

import { createRandom } from '@rejoin/hub/testing'
import { type FieldOptions, openField, type ProxiedReader } from '../crowds/field.ts'

/**
 * Readers that go away and come back about when the window has let go of what they need, again and again, each at its own
 * pace: what they are sent is read from the log while it is being trimmed. They are gone for up to twice what the window
 * holds, so that about one return in two is too late.
 */
export async function runTrims(options: TrimsOptions): Promise<void> {
  const { history, seed, readers, returns, channelOf, eventsPerSecond, maxMs } = options
  const { maxEvents } = options.window
  history.write({ kind: 'run', name: 'trims', seed, inputs: { readers, returns, maxEvents, eventsPerSecond } })
  const field = await openField({ ...options, channelsOf: (index) => [channelOf(index)] })
  const limit = performance.now() + maxMs
  await field.renewed()
  await Promise.all(
    field.proxiedReaders.map((reader, index) => {
      const times = reader.who.startsWith('client') ? Math.min(returns, clientReloads) : returns
      return comeAndGo(reader, channelOf(index), times, createRandom(seed * 1000 + index))
    }),
  )
  await field.finish()

  /** By the clock of the log: a machine that is slow publishes less, and trims less. */
  async function passed(events: number, channel: string): Promise<void> {
    const newest = () => field.newest().find((event) => event.channel === channel)?.seq ?? 0
    const from = newest()
    while (newest() < from + events && performance.now() < limit) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  async function comeAndGo(
    { who, proxy }: ProxiedReader,
    channel: string,
    times: number,
    random: () => number,
  ): Promise<void> {
    for (let count = 0; count < times; count += 1) {
      await passed(random() * maxEvents, channel)
      history.write({ kind: 'fault', what: 'gone', readers: [who] })
      proxy.reject('reset')
      proxy.cutAll('reset')
      await passed(random() * 2 * maxEvents, channel)
      proxy.accept()
      history.write({ kind: 'heal', readers: [who] })
    }
  }
}

export interface TrimsOptions extends Omit<FieldOptions, 'onLink' | 'channelsOf'> {
  readonly window: { readonly maxEvents: number; readonly maxAgeMs: number }
  /** What the reader with this index subscribes to. */
  channelOf(index: number): string
  /** How often each reader comes back; those that are our client, at most five times. */
  readonly returns: number
  /** Readers that are to wait for an event after this go on at once, so that the run ends. */
  readonly maxMs: number
}

// With the sixth gap in half a minute our client begins to keep them apart, and would not be here at the end.
const clientReloads = 5

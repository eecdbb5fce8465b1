import { RejoinError } from '@rejoin/protocol'

/**
 * The troubles of a hub that runs with `rejoin serve --chaos`, for tests in a real browser. They are those of a hub in the process
 * of a test, in real time. Each method resolves when the hub has done what it says.
 */
export interface Chaos {
  /**
   * Breaks every stream and poll. New ones fail for `forMs`.
   * @param forMs - left out, until `heal`
   */
  cut(forMs?: number): Promise<void>
  /** Ends what `cut` and `slow` have begun. */
  heal(): Promise<void>
  /** Lets each stream and poll carry so many bytes per second. With 0, connections stay open and nothing gets through. */
  slow(bytesPerSecond: number): Promise<void>
  /** Lets the events that the hub holds, or the rights of its streams, run out. */
  expire(what?: 'events' | 'token'): Promise<void>
  /** Stops the hub and starts it again, with its events or without. */
  restart(events?: 'kept' | 'lost'): Promise<void>
  /** Takes back the rights of a subject, or of everybody. New credentials are let in. */
  revoke(subject?: string): Promise<void>
}

export interface ChaosOptions {
  /**
   * Makes the requests, such as one of your own that adds a header.
   * @defaultValue the global `fetch`
   */
  fetch?: typeof globalThis.fetch
}

/**
 * @param url - of the hub: `http://127.0.0.1:4747`
 * @throws RejoinError `not-found`, from its methods, when the hub was started without `--chaos`
 */
export function chaosOf(url: string | URL, { fetch = globalThis.fetch }: ChaosOptions = {}): Chaos {
  const base = new URL('/chaos', url)

  async function order(verb: string, parameters: Record<string, unknown> = {}): Promise<void> {
    const starts = await ask(verb, parameters)
    // The hub answers before it stops. It is there again when it counts one more start.
    if (verb === 'restart') while ((await ask('', {}).catch(() => starts)) === starts) await pause()
  }

  /** @returns how often the hub has been started */
  async function ask(verb: string, parameters: Record<string, unknown>): Promise<number> {
    const target = new URL(verb ? `${base}/${verb}` : base)
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) target.searchParams.set(name, `${value}`)
    }
    const response = await fetch(target, verb ? { method: 'POST' } : {})
    if (response.ok) return (await response.json()).starts
    if (response.status === 404) throw new RejoinError(`${base.origin} ${advice}`, { code: 'not-found' })
    throw new RejoinError((await response.json()).error.message, { code: 'invalid-option' })
  }

  return {
    cut: (forMs) => order('cut', { forMs }),
    heal: () => order('heal'),
    slow: (bytesPerSecond) => order('slow', { bytesPerSecond }),
    expire: (what) => order('expire', { what }),
    restart: (events) => order('restart', { events }),
    revoke: (subject) => order('revoke', { subject }),
  }
}

const advice = 'orders no troubles. Start the hub with: rejoin serve --chaos'

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20))
}

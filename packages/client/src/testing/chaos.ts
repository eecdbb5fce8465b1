import { RejoinError } from '@rejoin/protocol'

/**
 * Orders troubles from a hub that runs with `rejoin serve --chaos`, for tests in a real browser. They are the troubles
 * of `createTestHub`, in real time. Each method resolves when the hub has carried out the order.
 */
export interface Chaos {
  /**
   * Breaks every stream and poll. New streams and polls fail for `forMs`.
   * @param forMs - without it, they fail until `heal`
   */
  cut(forMs?: number): Promise<void>
  /** Ends `cut` and `slow`. */
  heal(): Promise<void>
  /**
   * Limits each stream and poll to this many bytes per second. With 0, connections stay open and nothing gets through.
   */
  slow(bytesPerSecond: number): Promise<void>
  /** Makes the events that the hub holds expire, or the rights of its streams. */
  expire(what?: 'events' | 'token'): Promise<void>
  /** Stops the hub and starts it again, with or without its events. */
  restart(events?: 'kept' | 'lost'): Promise<void>
  /** Revokes the rights of a subject, or of everybody. New credentials are accepted. */
  revoke(subject?: string): Promise<void>
}

export interface ChaosOptions {
  /**
   * Makes the requests. Give your own to add a header, for example.
   * @defaultValue the global `fetch`
   */
  fetch?: typeof globalThis.fetch | undefined
}

/**
 * @param url - of the hub: `http://127.0.0.1:4747`
 * @throws RejoinError `not-found`, from each method, when the hub was started without `--chaos`
 */
export function chaosOf(url: string | URL, { fetch = globalThis.fetch }: ChaosOptions = {}): Chaos {
  const base = new URL('/chaos', url)

  async function order(verb: string, parameters: Record<string, unknown> = {}): Promise<void> {
    const starts = await ask(verb, parameters)
    // The hub answers before it stops. It has started again when its count of starts has changed.
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

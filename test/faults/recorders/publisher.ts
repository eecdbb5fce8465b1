import type { Hub } from '@rejoin/hub'
import type { History } from '../history/history.ts'
import type { SendBatch } from './batches.ts'
import { type PublishedEvent, shaOf, writeData } from './receipts.ts'

/**
 * Publishes at a steady pace to its channels in turn, and writes down each call and what became of it. In one channel a
 * publish waits for the answer to the one before. One that gets no answer is sent again under the same key.
 */
export function openPublisher(options: PublisherOptions): RecordedPublisher {
  const { history, who, channels, eventsPerSecond, send, bytes = 120, resends = 0, resendAfterMs = 0 } = options
  const lines = channels.map((channel) => ({ channel, seq: 0, waiting: 0, last: Promise.resolve() }))
  const newest = new Map<string, PublishedEvent>()
  const started = performance.now()
  let called = 0
  let acknowledged = 0
  let timer = setTimeout(tick, 0)

  function tick(): void {
    const due = Math.floor(((performance.now() - started) * eventsPerSecond) / 1000)
    for (; called < due; called += 1) {
      const line = lines[called % lines.length] as (typeof lines)[number]
      // A hub that does not answer is not to be buried under what it has missed.
      if (line.waiting >= 100) continue
      line.waiting += 1
      line.last = line.last.then(() => publish(line))
    }
    timer = setTimeout(tick, 1000 / eventsPerSecond)
  }

  async function publish(line: (typeof lines)[number]): Promise<void> {
    line.seq += 1
    const { channel, seq } = line
    const data = writeData(channel, seq, bytes)
    const key = `${who} ${channel} ${seq}`
    for (let attempt = 0; attempt <= resends; attempt += 1) {
      const size = data.length + 'message'.length
      history.write({ kind: 'invoke', who, channel, seq, sha: shaOf(data), key, bytes: size })
      const outcome = await send(channel, data, key)
      history.write({ who, channel, seq, ...outcome })
      if (outcome.kind === 'unknown') {
        if (resendAfterMs > 0) await new Promise((resolve) => setTimeout(resolve, resendAfterMs))
        continue
      }
      if (outcome.kind === 'ok') {
        acknowledged += 1
        newest.set(channel, { channel, seq, id: outcome.id })
      }
      break
    }
    line.waiting -= 1
  }

  return {
    get acknowledged() {
      return acknowledged
    },
    newest: () => [...newest.values()],
    async stop() {
      clearTimeout(timer)
      await Promise.all(lines.map((line) => line.last))
    },
  }
}

export interface PublisherOptions {
  readonly history: History
  readonly who: string
  readonly channels: readonly string[]
  readonly eventsPerSecond: number
  readonly send: Send
  /**
   * Length of the data of an event.
   * @defaultValue 120
   */
  readonly bytes?: number
  /**
   * How often a publish without an answer is sent again.
   * @defaultValue 0
   */
  readonly resends?: number
  /**
   * How long to wait before that, in ms.
   * @defaultValue 0
   */
  readonly resendAfterMs?: number
}

export interface RecordedPublisher {
  readonly acknowledged: number
  /** The newest acknowledged event of each channel. */
  newest(): PublishedEvent[]
  /** Resolves once nothing is under way any more. */
  stop(): Promise<void>
}

export type Send = (channel: string, data: string, idempotencyKey: string) => Promise<Outcome>

export type Outcome =
  | { readonly kind: 'ok'; readonly id: string }
  | { readonly kind: 'fail'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string }

/** Publishes in the process of the hub. */
export function throughHub(hub: Pick<Hub, 'publish'>): Send {
  return async (channel, text, idempotencyKey) => {
    try {
      const { id } = await hub.publish(channel, { text }, { idempotencyKey })
      return { kind: 'ok', id }
    } catch (error) {
      return { kind: 'unknown', why: String(error) }
    }
  }
}

/**
 * Publishes with `POST /publish/<channel>`. A rejection appends nothing (§5.7); but a server that failed, or a line that was
 * cut, leaves open what happened.
 *
 * @param limitMs - how long to wait for an answer
 * @param headers - more of them, such as who publishes
 */
export function throughHttp(origin: string, limitMs = 10_000, headers: Record<string, string> = {}): Send {
  return async (channel, body, key) => {
    const answer = await post(`${origin}/publish/${encodeURIComponent(channel)}`, { body, key, limitMs, headers })
    return 'kind' in answer ? answer : { kind: 'ok', id: answer.id }
  }
}

/** The same for batches (§5.1). */
export function batchThroughHttp(origin: string, limitMs = 10_000): SendBatch {
  return async (events, key) => {
    const answer = await post(`${origin}/publish`, { body: JSON.stringify(events), key, limitMs })
    return 'kind' in answer ? answer : { kind: 'ok', ids: answer.events.map(({ id }) => id) }
  }
}

async function post(url: string, { body, key, limitMs, headers: more }: PostOptions) {
  try {
    const headers = { ...more, 'Content-Type': 'application/json', 'Idempotency-Key': key }
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(limitMs) })
    const { status } = response
    if (status === 201) return (await response.json()) as { id: string; events: { id: string }[] }
    const { error } = (await response.json()) as { error?: { message: string } }
    const kind = (status >= 400 && status < 500) || status === 503 ? ('fail' as const) : ('unknown' as const)
    return { kind, why: `status ${status}: ${error?.message}` }
  } catch (error) {
    return { kind: 'unknown' as const, why: String(error) }
  }
}

interface PostOptions {
  readonly body: string
  readonly key: string
  readonly limitMs: number
  readonly headers?: Record<string, string>
}

import { setMaxListeners } from 'node:events'
import { Agent, request } from 'node:http'
import { createParser } from '@rejoin/protocol'

/** Readers and publishers of one proxy, none of which forgives: what they were answered is what a user would have seen. */
export interface Crowd {
  readonly readers: readonly CrowdReader[]
  /** Events that a hub has acknowledged, by channel. */
  readonly acknowledged: ReadonlyMap<string, readonly number[]>
  /** How often publishes were answered with each status. An error of the connection is named by its code. */
  readonly publishes: ReadonlyMap<string, number>
  /** How often requests for a stream were answered with each status. */
  readonly opens: ReadonlyMap<string, number>
  /** Publishes at a steady pace, until the returned function is called. It resolves when every publish has its answer. */
  startPublishing(): () => Promise<void>
  close(): void
}

export interface CrowdReader {
  readonly channel: string
  readonly isConnected: boolean
  /** The numbers of its events, in the order of their arrival. */
  readonly got: readonly number[]
  /** Whether it was told of a gap. */
  readonly hadGap: boolean
}

/** Readers of ten channels, each with an address of its own: limits that count by address are not what is tested here. */
export function openCrowd(url: string, name: string, addressOf: (reader: number) => string, size = 300): Crowd {
  const channels = Array.from({ length: 10 }, (_, number) => `${name}/${number}`)
  const acknowledged = new Map(channels.map((channel) => [channel, [] as number[]]))
  const publishes = new Map<string, number>()
  const opens = new Map<string, number>()
  const leave = new AbortController()
  // Each reader listens to it.
  setMaxListeners(0, leave.signal)
  const readers = Array.from({ length: size }, (_, number) =>
    startReader({
      url,
      channel: channels[number % channels.length] as string,
      localAddress: addressOf(number),
      opened: (status) => countIn(opens, status),
      signal: leave.signal,
    }),
  )
  // A publisher that publishes often keeps its connections.
  const kept = new Agent({ keepAlive: true })
  let next = 0

  async function publish(): Promise<void> {
    const number = next
    next += 1
    const channel = channels[number % channels.length] as string
    const status = await post(`${url}/publish/${channel}`, String(number), number % 2 === 0 ? kept : false)
    countIn(publishes, status)
    if (status === '201') acknowledged.get(channel)?.push(number)
  }

  return {
    readers,
    acknowledged,
    publishes,
    opens,
    startPublishing() {
      const open = new Set<Promise<void>>()
      const timer = setInterval(() => {
        const published = publish().finally(() => open.delete(published))
        open.add(published)
      }, publishEveryMs)
      return async () => {
        clearInterval(timer)
        await Promise.all(open)
      }
    },
    close() {
      leave.abort()
      kept.destroy()
    },
  }
}

const publishEveryMs = 40

/** Addresses of this machine, one for each reader. */
export function addressesIn(network: number): (reader: number) => string {
  return (reader) => `127.${network}.${1 + Math.floor(reader / 250)}.${1 + (reader % 250)}`
}

interface ReaderOptions {
  readonly url: string
  readonly channel: string
  readonly localAddress: string
  opened(status: string): void
  readonly signal: AbortSignal
}

/** As a browser's EventSource: it returns with its cursor when a stream ends, and never again after a status other than 200. */
function startReader({ url, channel, localAddress, opened, signal }: ReaderOptions): CrowdReader {
  const got: number[] = []
  const reader = { channel, got, isConnected: false, hadGap: false }
  let cursor = ''
  let retryMs = 1000

  function open(): void {
    const headers = { accept: 'text/event-stream', ...(cursor && { 'last-event-id': cursor }) }
    const asked = request(`${url}/events/${channel}`, { agent: false, localAddress, headers, signal })
    const again = () => {
      reader.isConnected = false
      if (!signal.aborted) setTimeout(open, retryMs)
    }
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (!signal.aborted) opened(String(error.code))
      again()
    })
    asked.on('response', (response) => {
      opened(String(response.statusCode))
      if (response.statusCode !== 200) return void response.resume()
      const parser = createParser({
        lastEventId: cursor,
        onRetry(ms) {
          retryMs = ms
        },
        onEvent({ type, data }) {
          if (type === 'hello') reader.isConnected = true
          else if (type === 'sync-required') reader.hadGap = true
          else if (type === 'message') got.push(Number(data))
        },
      })
      response.setEncoding('utf8').on('data', (text: string) => {
        parser.feed(text)
        cursor = parser.lastEventId
      })
      // A stream that was cut ends with an error, and then closes like any other.
      response.on('error', () => undefined).on('close', again)
    })
    asked.end()
  }

  open()
  return reader
}

/** The status of the answer, or the code of the error. */
function post(url: string, body: string, agent: Agent | false): Promise<string> {
  return new Promise((resolve) => {
    const asked = request(url, { method: 'POST', agent }, (response) => {
      response.resume().on('end', () => resolve(String(response.statusCode)))
    })
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
    asked.end(body)
  })
}

function countIn(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Hub, StreamFrame } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { nodeHandler } from '@rejoin/hub/node'
import { createParser } from '@rejoin/protocol'
import { expect, onTestFinished } from 'vitest'

/** What a reader that comes back is told first, over each way there is. */
export async function comesBack(hub: Hub, channel: string, cursor: string): Promise<EveryWay> {
  const request = { subscription: createSubscription([channel]), start: { from: 'cursor' as const, cursor } }
  const polled = await hub.port.poll(request, { waitMs: 0 })
  if (!('events' in polled)) throw new Error(polled.reason)
  const reader = readerOf(hub, channel, cursor)
  const last = polled.events.flatMap(toldBy).at(-1)
  if (last !== undefined) await reader.hears(last)
  return {
    poll: polled.events.flatMap(toldBy),
    stream: reader.said(),
    http2: await overHttp2(hub, `/events/${channel}`, cursor, last),
    'http2 poll': await pollOverHttp2(hub, `/poll/${channel}?waitMs=0`, cursor),
  }
}

/** The same over each way. */
export function overAll(said: readonly string[]): EveryWay {
  return { poll: said, stream: said, http2: said, 'http2 poll': said }
}

export type EveryWay = Readonly<Record<'poll' | 'stream' | 'http2' | 'http2 poll', readonly string[]>>

/** What a reader has been given: the data of events, and the reason of each gap. */
export interface Heard {
  said(): string[]
  /** Resolves when this was said. */
  hears(text: string): Promise<void>
  lastId(): string | null
  close(): void
}

/** Reads inside the program until the test is over. */
export function readerOf(hub: Hub, channels: string | readonly string[], cursor?: string): Heard {
  const frames: StreamFrame[] = []
  const leave = new AbortController()
  const read = async () => {
    for await (const frame of hub.stream(channels, { from: cursor ?? null, signal: leave.signal })) frames.push(frame)
  }
  read().catch(() => undefined)
  onTestFinished(() => leave.abort())
  const said = () => frames.flatMap(toldBy)
  return {
    said,
    hears: (text) => expect.poll(said).toContain(text),
    lastId: () => frames.at(-1)?.id ?? null,
    close: () => leave.abort(),
  }
}

function toldBy({ type, data }: { readonly type: string; readonly data: string }): string[] {
  if (type === 'sync-required') return [(JSON.parse(data) as { reason: string }).reason]
  return type === 'message' ? [data] : []
}

async function overHttp2(hub: Hub, path: string, cursor: string, last: string | undefined): Promise<string[]> {
  return ask(hub, path, cursor, (text) => {
    const said: string[] = []
    const parser = createParser({
      onEvent: (event) => said.push(...toldBy(event), ...(event.type === 'hello' ? [''] : [])),
    })
    parser.feed(text)
    const isDone = last === undefined ? said.includes('') : said.includes(last)
    return isDone ? said.filter((each) => each !== '') : undefined
  })
}

function pollOverHttp2(hub: Hub, path: string, cursor: string): Promise<string[]> {
  return ask(hub, path, cursor, (text, isWhole) => {
    return isWhole ? (JSON.parse(text) as { events: StreamFrame[] }).events.flatMap(toldBy) : undefined
  })
}

async function ask(
  hub: Hub,
  path: string,
  cursor: string,
  read: (text: string, isWhole: boolean) => string[] | undefined,
): Promise<string[]> {
  const server = createServer(nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  try {
    const stream = session.request({ ':path': path, 'last-event-id': cursor })
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) {
      text += chunk
      const said = read(text, false)
      if (said) return said
    }
    return read(text, true) ?? []
  } finally {
    session.destroy()
    server.close()
  }
}

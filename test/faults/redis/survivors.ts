import { Redis } from 'ioredis'

/** The data of every event that a Redis holds, by channel. */
export type Survivors = ReadonlyMap<string, readonly string[]>

/** What a server has of the log before any hub has met it. */
export async function survivorsOn({ port }: { readonly port: number }): Promise<Survivors> {
  const client = new Redis({ port, lazyConnect: true })
  await client.connect()
  const survivors = new Map<string, string[]>()
  for (const key of await client.keys(`${streams}*`)) {
    const entries = await client.xrange(key, '-', '+')
    survivors.set(
      key.slice(streams.length),
      entries.map(([, [, value = '']]) => dataOf(value)),
    )
  }
  client.disconnect()
  return survivors
}

/**
 * Throws unless every hub still gives all of them to a reader that asks for the beginning, whatever was lost after them.
 *
 * @returns how many events there are
 */
export async function readSurvivors(hubs: readonly { readonly port: number }[], survivors: Survivors): Promise<number> {
  for (const { port } of hubs) {
    for (const [channel, expected] of survivors) {
      const given = new Set(await readAll(`http://127.0.0.1:${port}/poll/${channel}`))
      const missing = expected.filter((data) => !given.has(data))
      if (missing.length > 0) {
        throw new Error(
          `The hub at ${port} no longer has ${missing.length} of ${expected.length} events of ${channel}.`,
        )
      }
    }
  }
  return [...survivors.values()].flat().length
}

const streams = '{rejoin}:c:'

/** An entry is four words, the kind and the channel, the type, the key, and then the data. */
function dataOf(value: string): string {
  return value.split('\n').slice(4).join('\n')
}

async function readAll(url: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor = 'earliest'; ; ) {
    const response = await fetch(`${url}?waitMs=0&cursor=${encodeURIComponent(cursor)}`)
    if (!response.ok) throw new Error(`${url} answered ${response.status}.`)
    const { events, cursor: next } = (await response.json()) as Answer
    const more = events.filter(({ type }) => !protocolTypes.has(type))
    found.push(...more.map(({ data }) => data))
    if (next === null || next === cursor || events.at(-1)?.type === 'checkpoint' || more.length === 0) return found
    cursor = next
  }
}

interface Answer {
  readonly events: readonly { readonly type: string; readonly data: string }[]
  readonly cursor: string | null
}

const protocolTypes = new Set(['hello', 'sync-required', 'checkpoint', 'close'])

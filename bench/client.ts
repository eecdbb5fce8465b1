/**
 * The client from bytes to handler: small events a second, through `connect`, in one thread.
 *
 * Method: a `fetch` of our own hands the client a stream that is ready in memory, in chunks of 64 KB as a socket gives
 * them, made by `encodeEvent` with an id, a type and 30 characters of JSON. One handler counts the events and sums up a
 * number in their data; the sum has to be right. So a figure is for decoding, parsing, dedup by id, `JSON.parse`, the
 * handler and the cursor. There are 5 counted rounds of 300,000 events after 2 for warming up; the figure is the median.
 * The bar is 500,000 events a second of processor time; missed, the exit code is 1.
 *
 * How it could mislead: there is no network and no TLS, which cost a process more than this does; one handler that does
 * next to nothing; and memory that is always in the cache. Processor time includes the collector's threads and leaves
 * out waiting. A busy machine still shares its caches.
 */
import { connect } from '@rejoin/client'
import { encodeEvent } from '@rejoin/protocol'
import { machine, median, printTable } from './measure.ts'

const rounds = 5
const warmUpRounds = 2
const count = 300_000
const chunkBytes = 65_536
const bar = 500_000

const chunks = makeChunks()
const speeds: number[] = []
for (let round = -warmUpRounds; round < rounds; round++) {
  const speed = await run()
  if (round >= 0) speeds.push(speed)
}
const eventsPerSecond = Math.round(median(speeds))
const bytesPerEvent = Math.round(chunks.reduce((sum, { length }) => sum + length, 0) / count)

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ bench: 'client', machine: machine(), rounds, count, bytesPerEvent, eventsPerSecond }))
} else {
  console.log(`${machine()}\nmedian of ${rounds} rounds; per second of processor time\n`)
  printTable([{ events: count, 'bytes per event': bytesPerEvent, 'events/s': eventsPerSecond.toLocaleString('en') }])
  console.log(`\nbar: ${bar.toLocaleString('en')} events/s: ${eventsPerSecond >= bar ? 'held' : 'missed'}`)
}
if (eventsPerSecond < bar) process.exitCode = 1

function makeChunks(): Uint8Array[] {
  // It makes the server a hub, whose ids are remembered.
  let text = encodeEvent({ type: 'hello', data: '{"resumed":false,"requested":null,"heartbeatMs":25000}' })
  for (let n = 0; n < count; n++) {
    const id = `01JCQ8ZK5N7W2V0G${String(n).padStart(10, '0')}`
    text += encodeEvent({ id, type: 'tick', data: `{"n":${n},"text":"xxxxxxxxxxxx"}` })
  }
  const bytes = Buffer.from(text)
  const made: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) made.push(bytes.subarray(at, at + chunkBytes))
  return made
}

async function run(): Promise<number> {
  let seen = 0
  let sum = 0
  const start = process.cpuUsage()
  await new Promise<void>((resolve) => {
    const stream = connect<{ tick: { n: number } }>('http://memory/events', { fetch: async () => answer() })
    stream.on('tick', ({ data }) => {
      seen += 1
      sum += data.n
      if (seen === count) {
        stream.close()
        resolve()
      }
    })
  })
  const { user, system } = process.cpuUsage(start)
  if (sum !== (count * (count - 1)) / 2) throw new Error(`the data summed up to ${sum}`)
  return (count / (user + system)) * 1_000_000
}

function answer(): Response {
  let next = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks[next++]
      if (chunk) controller.enqueue(chunk)
      else controller.close()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

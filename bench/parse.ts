/**
 * Parsing beside npm eventsource-parser: small and 64 KB events, in whole, in pieces of 1 KB and of one byte.
 *
 * Method: both parsers read the same frames, made by `encodeEvent` with an id and a type, and do the same job: count the
 * events, sum up the length of their data and look at its last character. Every answer has to be what was encoded. There
 * are 7 counted rounds after 8 for warming up. In a round each of the six streams is read until both parsers have spent
 * 60 ms of processor time on it; they take turns stream by stream, in turn the first. A speed is the median of the
 * rounds, a ratio the median of the rounds' ratios. The bar is a ratio of at least 1 in every cell; missed, the exit
 * code is 1.
 *
 * How it could mislead: processor time includes the collector's and the compiler's threads and leaves out waiting, but a
 * busy machine still shares its caches: trust the ratios, not the speeds. The pieces are made beforehand, as flat strings
 * of one byte per character: decoding, which costs a client more than parsing, is in neither figure, and text beyond
 * Latin-1 takes other paths of the engine. The last character is looked at because an engine puts off joining the pieces
 * of a string until someone reads it. The frames are those of a hub: bare `data` lines, read in whole, come out about
 * even. Ours does more on the way: it keeps the last id and limits the length of an event.
 */
import { createParser, encodeEvent } from '@rejoin/protocol'
import { createParser as createPeer } from 'eventsource-parser'
import { machine, median, printTable } from './measure.ts'

const rounds = 7
const warmUpRounds = 8
const roundMs = 60

const sizes = { small: 30, '64 KB': 65_536 }
const cuts = { whole: Number.POSITIVE_INFINITY, '1 KB': 1024, '1 byte': 1 }

const streams = Object.entries(sizes).flatMap(([events, dataLength]) =>
  Object.entries(cuts).map(([pieces, cut]) => makeStream({ events, pieces, dataLength, cut })),
)
const cells = measure(streams)
const missed = cells.filter(({ ratio }) => ratio < 1)

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ bench: 'parse', machine: machine(), rounds, roundMs, cells }))
} else {
  console.log(
    `${machine()}\nmedian of ${rounds} rounds of ${roundMs} ms; characters per microsecond of processor time\n`,
  )
  printTable(
    cells.map(({ events, pieces, count, characters, ours, peer, ratio }) => ({
      events,
      pieces,
      input: `${count} events, ${characters} characters`,
      ours: ours.toFixed(1),
      'eventsource-parser': peer.toFixed(1),
      ratio: ratio.toFixed(2),
    })),
  )
  console.log(`\nbar: no ratio under 1: ${missed.length === 0 ? 'held' : 'missed'}`)
}
if (missed.length > 0) process.exitCode = 1

interface Stream {
  readonly events: string
  readonly pieces: string
  readonly characters: number
  readonly text: readonly string[]
  readonly answer: Answer
}

interface Answer {
  count: number
  dataLength: number
  lastCharacters: number
}

/** Characters read per microsecond of processor time. */
interface Round {
  readonly ours: number
  readonly peer: number
}

interface Cell {
  readonly events: string
  readonly pieces: string
  readonly count: number
  readonly characters: number
  readonly ours: number
  readonly peer: number
  readonly ratio: number
}

function measure(all: readonly Stream[]): Cell[] {
  const cells = all.map((stream) => ({ stream, rounds: [] as Round[] }))
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const cell of cells) {
      const result = runRound(cell.stream)
      if (round >= 0) cell.rounds.push(result)
    }
  }
  return cells.map(({ stream: { events, pieces, characters, answer }, rounds }) => ({
    events,
    pieces,
    count: answer.count,
    characters,
    ours: median(rounds.map(({ ours }) => ours)),
    peer: median(rounds.map(({ peer }) => peer)),
    ratio: median(rounds.map(({ ours, peer }) => ours / peer)),
  }))
}

/** The parsers take turns stream by stream, so that a machine that slows down for a moment slows both. */
function runRound({ text, characters, answer }: Stream): Round {
  const spent = { ours: 0, peer: 0 }
  let times = 0
  while (Math.min(spent.ours, spent.peer) < roundMs * 1000) {
    for (const parser of times % 2 === 0 ? (['ours', 'peer'] as const) : (['peer', 'ours'] as const)) {
      const start = process.cpuUsage()
      const got = parser === 'ours' ? readOurs(text) : readPeer(text)
      const { user, system } = process.cpuUsage(start)
      spent[parser] += user + system
      check(got, answer)
    }
    times += 1
  }
  return { ours: (times * characters) / spent.ours, peer: (times * characters) / spent.peer }
}

function makeStream(shape: { events: string; pieces: string; dataLength: number; cut: number }): Stream {
  const { events, pieces, dataLength, cut } = shape
  const length = cut === 1 ? 1_000_000 : 8_000_000
  const answer: Answer = { count: 0, dataLength: 0, lastCharacters: 0 }
  let text = ''
  while (text.length < length) {
    const id = `01JCQ8ZK5N7W2V0G${String(answer.count).padStart(10, '0')}`
    const data = `{"n":${answer.count},"text":"${'x'.repeat(dataLength - 20)}"}`
    text += encodeEvent({ id, type: 'tick', data })
    add(answer, data)
  }
  return { events, pieces, characters: text.length, text: cutUp(text, cut), answer }
}

function cutUp(text: string, cut: number): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += cut) pieces.push(flat(text.slice(at, at + cut)))
  return pieces
}

/** A decoder hands out strings of their own; a slice of a longer one would be read on another path of the engine. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function readOurs(pieces: readonly string[]): Answer {
  const answer: Answer = { count: 0, dataLength: 0, lastCharacters: 0 }
  const parser = createParser({ onEvent: ({ data }) => add(answer, data) })
  for (const piece of pieces) parser.feed(piece)
  return answer
}

function readPeer(pieces: readonly string[]): Answer {
  const answer: Answer = { count: 0, dataLength: 0, lastCharacters: 0 }
  const parser = createPeer({ onEvent: ({ data }) => add(answer, data) })
  for (const piece of pieces) parser.feed(piece)
  return answer
}

function add(answer: Answer, data: string): void {
  answer.count += 1
  answer.dataLength += data.length
  answer.lastCharacters += data.charCodeAt(data.length - 1)
}

function check(got: Answer, expected: Answer): void {
  if (JSON.stringify(got) === JSON.stringify(expected)) return
  throw new Error(`read ${JSON.stringify(got)} where ${JSON.stringify(expected)} was written`)
}

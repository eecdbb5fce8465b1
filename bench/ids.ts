/**
 * Ids per second: making and judging them, per codec, beside npm ulid and npm uuid.
 *
 * Method: `make` is what a hub pays per event, a tick of the log's clock and `renderId`; `judge` is what it pays per
 * returning reader, `judgeCursor` on one of 1,000 ids of its own. The peers make theirs with `monotonicFactory()` and
 * `v7()`, and read them back with `decodeTime` and `parse`. 7 rounds over all subjects in turn, after 2 that are not
 * counted; 200,000 operations per subject and round; the figure is the median round. The bar is 1,000,000 ids made, and
 * as many judged, per second with every codec; missed, the exit code is 1.
 *
 * How it could mislead: the peers do other work. npm uuid draws random bits for every id and npm ulid for every
 * millisecond, ours only for every branch; they read a time or bytes, ours gives a verdict on the whole id. A tight loop
 * keeps tables and code in the cache, which a hub with other things to do does not. The last character of every made id
 * is looked at, because an engine puts off joining the pieces of a text until someone reads it; but no id is kept, and
 * with 200,000 kept the rate fell by half. A busy neighbour slows every figure: compare within one run.
 */
import { cpus } from 'node:os'
import {
  createEpoch,
  createIdFormats,
  createPositionClock,
  hlc,
  type IdCodec,
  judgeCursor,
  openBranch,
  renderId,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
import { decodeTime, monotonicFactory } from 'ulid'
import { parse, v7 } from 'uuid'

const bar = 1_000_000
const operations = 200_000
const warmUpRounds = 2
const rounds = 7

const subjects = [...[ulid(), uuidv7(), snowflake(), sequence(), hlc()].map(ours), npmUlid(), npmUuid()]
const results = measure(subjects)
const missed = results.filter(({ peer, make, judge }) => !peer && Math.min(make, judge) < bar)
const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, ${process.platform}, node ${process.version}`

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ bench: 'ids', machine, operations, rounds, bar, results }))
} else {
  console.log(`${machine}; median of ${rounds} rounds of ${operations} operations\n`)
  console.log(`${'ids'.padEnd(14)}${'made/s'.padStart(14)}${'judged/s'.padStart(14)}  example`)
  for (const { name, make, judge, example } of results) {
    console.log(`${name.padEnd(14)}${whole(make).padStart(14)}${whole(judge).padStart(14)}  ${example}`)
  }
  console.log(`\nbar: ${whole(bar)} of both with each of ours: ${missed.length === 0 ? 'held' : 'missed'}`)
}
if (missed.length > 0) process.exitCode = 1

interface Subject {
  readonly name: string
  /** Beside ours for comparison; the bar is not for it. */
  readonly peer: boolean
  make(): string
  /** Anything that depends on the id, so that the engine cannot leave the work out. */
  judge(id: string): number
}

interface Result {
  readonly name: string
  readonly peer: boolean
  readonly make: number
  readonly judge: number
  readonly example: string
}

function ours(codec: IdCodec): Subject {
  const formats = createIdFormats([{ codec }])
  const clock = createPositionClock({ ...formats.range, now: Date.now })
  const history = openBranch([], { epoch: createEpoch(Math.random), first: clock.next() })
  const context = { formats, history }
  return {
    name: codec.name,
    peer: false,
    make: () => renderId(clock.next(), context),
    judge(id) {
      const verdict = judgeCursor(id, { formats, history, head: clock.last })
      if (!verdict.ok) throw new Error(`${codec.name} does not take back ${id}: ${verdict.reason}`)
      return verdict.position.seq
    },
  }
}

function npmUlid(): Subject {
  return { name: 'npm ulid', peer: true, make: monotonicFactory(), judge: decodeTime }
}

function npmUuid(): Subject {
  return { name: 'npm uuid v7', peer: true, make: () => v7(), judge: (id) => parse(id)[15]! }
}

function measure(all: readonly Subject[]): Result[] {
  const timings = all.map((subject) => ({ subject, make: [] as number[], judge: [] as number[] }))
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const { subject, make, judge } of timings) {
      const made = perSecond(() => makeMany(subject))
      const judged = perSecond(judgeMany(subject))
      if (round < 0) continue
      make.push(made)
      judge.push(judged)
    }
  }
  return timings.map(({ subject, make, judge }) => ({
    name: subject.name,
    peer: subject.peer,
    make: median(make),
    judge: median(judge),
    example: subject.make(),
  }))
}

function makeMany(subject: Subject): number {
  let sum = 0
  for (let made = 0; made < operations; made++) {
    const id = subject.make()
    sum += id.charCodeAt(id.length - 1)
  }
  return sum
}

function judgeMany(subject: Subject): () => number {
  const ids = Array.from({ length: 1000 }, () => subject.make())
  return () => {
    let sum = 0
    for (let judged = 0; judged < operations; judged++) sum += subject.judge(ids[judged % ids.length]!)
    return sum
  }
}

function perSecond(work: () => number): number {
  const start = performance.now()
  if (Number.isNaN(work())) throw new Error('the work came to nothing')
  return operations / ((performance.now() - start) / 1000)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/**
 * A million channels that had one event each: what they cost in memory and on disk once that is gone, and opening them.
 *
 * Method: a hub on the embedded log in this process. One event of 200 bytes goes to each channel, in batches of 1,000. Then
 * its clock is put 25 hours ahead, past the window, and runs 50 times as fast, until the sweep has emptied all of them: what
 * is left is a name and where its events ended. The memory is that of the whole process after a forced collection, from
 * /proc: `RssAnon` is what the process has taken for itself, `RssFile` the pages of files that are mapped into it, the log's
 * among them, which the system takes back when it needs room. Flat means: of what the process takes for itself, no more with
 * all channels than with the first fifth of them. The bytes on disk are those of the pages in use. Opening is from
 * `lmdbLog().open()` to its promise, with the file in the page cache; median of 5.
 *
 * How it could mislead: nobody reads, and a channel with a reader costs what a reader costs. The file does not become
 * smaller: what is free in it is used again. A name here has 10 bytes. Without the forced collection, garbage is in the figures, which is more or less by chance.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createHub, type Environment, systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { open as openLmdb } from 'lmdb'
import { median } from './measure.ts'
import { numbersFrom } from './options.ts'
import { openingMs } from './processes/opening.ts'
import { report } from './report.ts'

const { channels } = numbersFrom({ channels: 1_000_000 })
const batch = 1000
const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-'))
const file = join(folder, 'data.mdb')
const source = lmdbLog(folder)
const collect = collector()
const clock = { aheadMs: 0, isFast: false, rounds: 0 }
const memory: Memory[] = []

const hub = await createHub({ log: source, environment: environmentOf() })
recordMemory('opened')
for (let made = batch; made <= channels; made += batch) {
  await hub.publishBatch(Array.from({ length: batch }, (_, index) => messageTo(made - index)))
  if (made % (channels / 5) === 0) recordMemory(`${made} channels`)
}
Object.assign(clock, { aheadMs: 25 * 3_600_000, isFast: true, rounds: 0 })
// The first round may have begun before that.
while (clock.rounds < 2) await sleep(100)
recordMemory('all of them empty')
await hub.close()
const { entries, bytes } = pagesInUse()
const opens: number[] = []
for (let run = 0; run < 5; run += 1) opens.push(await openingMs(source))
rmSync(folder, { recursive: true })

const [, first] = memory
const last = memory.at(-1)
report({
  bench: 'channels',
  inputs: { channels, 'bytes of an event': 200, 'entries at the end': entries },
  figures: [
    {
      what: 'RssAnon, all channels to the first fifth',
      value: last!['RssAnon MB'] / first!['RssAnon MB'],
      unit: '×',
      atMost: 1.2,
      note: 'what grows is RssFile',
    },
    { what: 'JS heap, the same', value: last!['heap MB'] / first!['heap MB'], unit: '×', atMost: 1.2 },
    { what: 'a finished channel on disk', value: bytes / channels, unit: 'bytes', atMost: 100 },
    { what: 'opening the log', value: median(opens), unit: 'ms', atMost: 2000 },
  ],
  details: memory,
})

type Memory = Record<'RssAnon MB' | 'RssFile MB' | 'heap MB' | 'file MB', number> & { readonly when: string }

function recordMemory(when: string): void {
  collect()
  const status = readFileSync('/proc/self/status', 'utf8')
  const megabytes = (name: string) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) * 1024) / 1e6
  memory.push({
    when,
    'RssAnon MB': megabytes('RssAnon'),
    'RssFile MB': megabytes('RssFile'),
    'heap MB': process.memoryUsage().heapUsed / 1e6,
    'file MB': statSync(file).size / 1e6,
  })
}

function messageTo(number: number) {
  return { channel: `job/${String(number).padStart(6, '0')}`, text: 'x'.repeat(200) }
}

/** Time that can be put ahead, and in which nobody waits for long. The sweep ends a round by asking to be called in an hour. */
function environmentOf(): Environment {
  return {
    ...systemEnvironment,
    now: () => Date.now() + clock.aheadMs,
    after(delayMs, task) {
      if (delayMs === 3_600_000) clock.rounds += 1
      return systemEnvironment.after(clock.isFast ? Math.min(delayMs / 50, 100) : Math.min(delayMs, 1000), task)
    },
  }
}

function pagesInUse(): { entries: number; bytes: number } {
  const database = openLmdb(file, { keyEncoding: 'binary', encoding: 'binary', readOnly: true })
  const stats = database.getStats() as Record<string, number>
  const pages = stats.treeBranchPageCount! + stats.treeLeafPageCount! + stats.overflowPages!
  void database.close()
  return { entries: stats.entryCount!, bytes: pages * stats.pageSize! }
}

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

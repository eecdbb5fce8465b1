import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { createRandom } from '@rejoin/hub/testing'
import { isAfter, type Position } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../../support/paths.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const maxBytes = 60_000
const window = { maxEvents: 200, maxAgeMs: 24 * 3_600_000 }
const channels = 40

test('a log at its budget, killed five times by SIGKILL, has counted right, and holds or announces every acknowledged event', async () => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const random = createRandom(3)
  const acknowledged: Acknowledged[] = []
  for (let cycle = 0; cycle < 5; cycle += 1) {
    acknowledged.push(...(await publishUntilKilled(folder, 300 + Math.floor(random() * 300))))
    const log = await lmdbLog(folder, { window, maxBytes }).open(systemEnvironment)
    try {
      // What was over the budget when the process ended goes now.
      await expect.poll(() => usedBytesOf(log)).toBeLessThanOrEqual(maxBytes)
      const usedBytes = await usedBytesOf(log)
      expect((await log.windows(['*']))[0]?.bytes).toBe(usedBytes)
      expect(usedBytes).toBeGreaterThan(maxBytes / 2)
      await expectNothingLost(log, acknowledged)
    } finally {
      await log.close()
    }
  }
  // Every channel stands in the order of age: a budget of nothing empties all of them.
  const log = await lmdbLog(folder, { window, maxBytes: 1 }).open(systemEnvironment)
  try {
    await expect.poll(() => usedBytesOf(log)).toBe(0)
    expect((await log.windows(['*']))[0]).toMatchObject({ events: 0, bytes: 0 })
  } finally {
    await log.close()
  }
})

async function usedBytesOf(log: Log): Promise<number | undefined> {
  return (await log.budget?.())?.usedBytes
}

interface Acknowledged {
  readonly channel: string
  readonly data: string
  readonly position: Position
}

/** What a process of its own has published, up to its end by SIGKILL after so many answers. */
async function publishUntilKilled(folder: string, answers: number): Promise<Acknowledged[]> {
  const args = ['--input-type=module', '-e', publisher, folder, JSON.stringify({ window, maxBytes }), String(channels)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const acknowledged: Acknowledged[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged.push(JSON.parse(line))
    if (acknowledged.length >= answers) child.kill('SIGKILL')
  }
  await exited
  return acknowledged
}

const publisher = `
import { systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
const [folder, options, channels] = process.argv.slice(1)
const log = await lmdbLog(folder, JSON.parse(options)).open(systemEnvironment)
let number = 0
async function publish() {
  for (;;) {
    number += 1
    const channel = 'room/' + (number * 7919) % Number(channels)
    const data = (process.pid + ' ' + number).padEnd(50 + (number * 131) % 700, '.')
    const { stamps } = await log.append([{ channel, type: 'message', data }], { token: String(number) })
    process.stdout.write(JSON.stringify({ channel, data, position: stamps[0].position }) + '\\n')
  }
}
await Promise.all(Array.from({ length: 8 }, publish))
`

/** As a reader that was away: everything after the last position that the channel is known to have lost. */
async function expectNothingLost(log: Log, acknowledged: readonly Acknowledged[]): Promise<void> {
  const head = await log.head()
  for (let number = 0; number < channels; number += 1) {
    const channel = `room/${number}`
    const [state] = await log.windows([channel])
    const trimmedThrough = state?.trimmedThrough as Position
    const page = await log.read([channel], trimmedThrough, head, { events: 10_000, bytes: 1e9 })
    expect(page.gap).toBeUndefined()
    const due = acknowledged.filter((event) => event.channel === channel && isAfter(event.position, trimmedThrough))
    // More than was acknowledged may be there: an answer can be lost with the process.
    const held = new Set(page.events.map(({ data }) => data))
    expect(due.filter(({ data }) => !held.has(data))).toEqual([])
  }
}

import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { type LmdbLogOptions, lmdbLog } from '@rejoin/hub/lmdb'
import type { Log, LogEvent } from '@rejoin/hub/log'
import { createVirtualEnvironment, type VirtualEnvironment } from '@rejoin/hub/testing'
import { isAfter, type Position } from '@rejoin/protocol'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts'

/** A folder for the logs of one test, closed and removed with it. */
export function lmdbWorkbench() {
  const { folder, remove } = temporaryFolder()
  const opened: Log[] = []
  const environment = createVirtualEnvironment()
  onTestFinished(async () => {
    await Promise.all(opened.map((log) => log.close()))
    remove()
  })

  return {
    environment,
    data: (place = 'log') => join(folder, place, 'data.mdb'),
    folder: (place = 'log') => join(folder, place),
    async open(options: LmdbLogOptions = {}, place = 'log'): Promise<Log> {
      const log = await lmdbLog(join(folder, place), { lockTimeoutMs: 0, ...options }).open(environment)
      opened.push(log)
      return log
    },
    /** What a process that dies now leaves behind, in a place of its own. */
    crash(place = 'log', copy = 'crashed'): string {
      const isSocket = (path: string) => path.endsWith('.sock')
      cpSync(join(folder, place), join(folder, copy), { recursive: true, filter: (path) => !isSocket(path) })
      return copy
    },
  }
}

let tokens = 0

export async function publish(log: Log, channel: string, ...texts: string[]): Promise<Position[]> {
  tokens += 1
  const entries = texts.map((data) => ({ channel, type: 'message', data }))
  const { stamps } = await log.append(entries, { token: `test-${tokens}` })
  return stamps.map(({ position }) => position)
}

/** Reads a channel as a hub does: page by page, over every gap it is told of. */
export async function readOn(log: Log, channel: string, after: Position) {
  const events: LogEvent[] = []
  const gaps: string[] = []
  const head = await log.head()
  for (let cursor = after; isAfter(head, cursor); ) {
    const page = await log.read([channel], cursor, head, { events: 10, bytes: 1e6 })
    if (page.gap) gaps.push(page.gap.reason)
    events.push(...page.events)
    cursor = page.gap?.wholeAfter ?? page.completeThrough
  }
  return { texts: events.map((event) => event.data), gaps }
}

/** Lets virtual time pass, in steps between which real commits can end, until something holds. */
export async function passTimeUntil(environment: VirtualEnvironment, stepMs: number, holds: () => Promise<boolean>) {
  const deadline = Date.now() + 20_000
  while (Date.now() < deadline) {
    if (await holds()) return
    await environment.advance(stepMs)
  }
  throw new Error('It did not come to hold.')
}

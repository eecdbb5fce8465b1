import { cpSync, rmSync } from 'node:fs'
import type { Log } from '@rejoin/hub/log'
import {
  createEpoch,
  type History,
  type IdCodec,
  judgeCursor,
  openBranch,
  origin,
  type Position,
  renderId,
  sequence,
  snowflake,
  ulid,
  uuidv7,
} from '@rejoin/protocol'
import { open as openDatabase } from 'lmdb'
import { describe, expect, test } from 'vitest'
import { formatKey, stateKey } from '../../../../src/log/lmdb/format/keys.ts'
import { sealFormat } from '../../../../src/log/lmdb/format/log-format.ts'
import { openLogState, sealLogState } from '../../../../src/log/lmdb/format/state.ts'
import { lmdbWorkbench, publish, readOn } from '../workbench.ts'

const codecs: readonly IdCodec[] = [ulid(), uuidv7(), snowflake(), sequence()]

describe.each(codecs.map((codec) => [codec.name, codec] as const))('a folder with %s ids', (_name, codec) => {
  test('that an older copy was put back into tells every reader of what was lost, before and after the next event (§2.3)', async () => {
    for (const whileOpen of [false, true]) {
      const { open, folder, environment } = lmdbWorkbench()
      const first = await open({ codec })
      const early = await publishSome(first, 5)
      await first.close()
      const second = await open({ codec })
      // A copy of a folder in use is one of its last commit.
      if (!whileOpen) await second.close()
      copy(folder(), folder('copy'))
      const later = whileOpen ? second : await open({ codec })
      const lost = await publishSome(later, 5)
      await later.close()
      rmSync(folder(), { recursive: true })
      copy(folder('copy'), folder())
      await environment.advance(5)

      const log = await open({ codec })
      for (const published of [0, 3, 10]) {
        const news = await publishSome(log, published)
        const verdicts = await verdictsOf(log, lost)
        expect(verdicts, `${published} events after the restore`).toEqual(lost.map(() => 'epoch'))
        expect(await verdictsOf(log, [...early, ...news])).toEqual([...early, ...news].map(() => 'ok'))
        for (const id of news) expect(lost).not.toContain(id)
      }
    }
  })

  test('that was cloned gives no id of the other, and takes none of the other for its own', async () => {
    const { open, folder } = lmdbWorkbench()
    const before = await open({ codec })
    const shared = await publishSome(before, 2)
    await before.close()
    copy(folder(), folder('clone'))
    const [one, other] = [await open({ codec }), await open({ codec }, 'clone')]
    const ids = [await publishSome(one, 5), await publishSome(other, 5)] as const
    expect(new Set(ids.flat()).size).toBe(10)
    expect(await verdictsOf(one, ids[1])).toEqual(ids[1].map(() => 'epoch'))
    expect(await verdictsOf(other, ids[0])).toEqual(ids[0].map(() => 'epoch'))
    expect(await verdictsOf(other, shared)).toEqual(['ok', 'ok'])
  })
})

test.each(codecs.filter(({ clock }) => clock === 'hybrid').map((codec) => [codec.name, codec] as const))(
  'a folder that was emptied, with the clock behind, takes no %s id of its former life for its own (§2.3)',
  async (_name, codec) => {
    const { open, folder, environment } = lmdbWorkbench()
    const before = await open({ codec })
    const lost = await publishSome(before, 5)
    await before.close()
    rmSync(folder(), { recursive: true })
    environment.stepClock(-60_000)
    const log = await open({ codec })
    environment.stepClock(120_000)
    const news = await publishSome(log, 5)
    expect(await verdictsOf(log, [...lost, ...news])).toEqual([...lost.map(() => 'epoch'), ...news.map(() => 'ok')])
  },
)

test('a reader that was given the head of a log without news goes on after any number of starts', async () => {
  const { open } = lmdbWorkbench()
  let log = await open()
  const places = await publish(log, 'a', '1')
  const heads: string[] = []
  for (let start = 0; start < 20; start += 1) {
    heads.push(renderId(await log.head(), log))
    await log.close()
    log = await open()
  }
  expect(await verdictsOf(log, heads)).toEqual(heads.map(() => 'ok'))
  await publish(log, 'a', '2')
  expect(await readOn(log, 'a', places[0] as Position)).toEqual({ texts: ['2'], gaps: [] })
})

test('the history of a log that is started again and again stays short, and the id of a merged branch is told (§2.3)', async () => {
  const { open, data, environment } = lmdbWorkbench()
  const before = await open()
  const { formats } = before
  const [place] = await publish(before, 'a', '1')
  await before.close()
  await environment.advance(10_000)
  let history: History = before.history
  for (let start = 1; start < 4000; start += 1) {
    const first = { ms: place!.ms + start, seq: 0 }
    history = openBranch(history, { epoch: createEpoch(Math.random), first, fork: history.at(-1)!.first })
  }
  const ids = history.map((branch) => renderId(branch.first, { formats, history }))
  const root = openDatabase<Buffer, Buffer>(data(), { keyEncoding: 'binary', encoding: 'binary' })
  await root.put(formatKey, sealFormat(formatKey, { formats, history, marks: [] }))
  const state = openLogState(stateKey, root.get(stateKey)!)!
  await root.put(stateKey, sealLogState(stateKey, { ...state, last: history.at(-1)!.first }))
  await root.close()

  const log = await open()
  await publish(log, 'a', '2')
  await log.close()
  const again = await open()
  expect(again.history.length).toBeLessThan(2010)
  const verdicts = await verdictsOf(again, ids.slice(0, -1))
  expect(verdicts.slice(0, 1900)).toEqual(ids.slice(0, 1900).map(() => 'epoch'))
  expect(verdicts.slice(-1990)).toEqual(ids.slice(-1990).map(() => 'ok'))
  expect(await readOn(again, 'a', origin)).toEqual({ texts: ['1', '2'], gaps: [] })
  expect(await verdictsOf(again, [renderId(place!, again)])).toEqual(['ok'])
})

function copy(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.sock') })
}

async function publishSome(log: Log, count: number): Promise<string[]> {
  const texts = Array.from({ length: count }, (_, index) => `${index}`)
  return (count === 0 ? [] : await publish(log, 'a', ...texts)).map((place) => renderId(place, log))
}

async function verdictsOf(log: Log, ids: readonly string[]): Promise<string[]> {
  const head = await log.head()
  return ids.map((id) => {
    const verdict = judgeCursor(id, { ...log, head })
    return verdict.ok ? 'ok' : verdict.reason
  })
}

import { type Branch, origin, type Position } from '@rejoin/protocol'
import { expect, test, vi } from 'vitest'
import { findFreshStart } from '../../../src/hub/read/gap.ts'

type Context = Parameters<typeof findFreshStart>[0]

const at = (ms: number): Position => ({ ms, seq: 0 })
const before: Branch = { epoch: 'before', number: 1, first: at(1) }
const since: Branch = { epoch: 'since', number: 2, first: at(10) }

test('values that were read on a new branch are not sent with a position of the branch before it (§4.6)', async () => {
  const { context, open } = stage()
  const tailIsCurrent = vi.fn(async () => open.onTail())
  let reads = 0
  const retained = async () => {
    reads += 1
    if (reads === 1) open.inLog()
    return [{ id: `read ${reads}`, channel: 'a', key: 'k', type: 'message', data: '' }]
  }
  const start = await findFreshStart(
    { ...context, retained },
    { channels: ['a'], notBefore: origin, isStateWanted: true, isGone: () => false, tailIsCurrent },
  )
  expect(tailIsCurrent).toHaveBeenCalledOnce()
  expect(start).toMatchObject({ at: { branch: since, position: since.first }, state: { retained: [{ id: 'read 2' }] } })
})

/** A hub on one branch, and a log that can open another one, of which the tail learns later. */
function stage() {
  const log = { history: [before] }
  const live = { head: { branch: before, position: at(5) }, hot: { covers: () => true } }
  const context = {
    log,
    live,
    windows: async () => [],
    snapshots: { take: async () => ({ at: live.head, state: {} }) },
    retained: async () => undefined,
    isLocal: () => false,
    idOf: () => '',
  } as unknown as Context
  const open = {
    inLog() {
      log.history = [before, since]
    },
    onTail() {
      live.head = { branch: since, position: since.first }
    },
  }
  return { context, open }
}

import { createEpoch, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import { parseTold } from './branches.ts'
import { positionText } from './entry.ts'
import type { Link } from './link.ts'
import type { KnownState } from './state.ts'

/**
 * Reports a loss after somebody put an older copy of the log back, and another hub published to the copy before this hub
 * looked. No branch lies between the lost events and the new ones. So this hub opens a branch now, which puts the channels of
 * the lost events on record.
 *
 * @param fork - up to here the hub and the log agree
 */
export async function reportPutBack(
  link: Link,
  state: KnownState,
  environment: Environment,
  now: string,
  fork: Position,
): Promise<void> {
  const lost = state.channels.past(fork)
  const channels = lost ? [...lost.keys()] : ['*']
  // The log went on in silence, so the mark for readers from before stands right behind the fork, unless an event has that position.
  const behindFork = positionText({ ...fork, seq: fork.seq + 1 })
  let known = state.epoch
  let reportedBy = ''
  for (let round = 0; round < rounds; round += 1) {
    const epoch = createEpoch(environment.random)
    const named = [epoch, String(drawBranchStep(environment.random)), positionText(state.seen ?? fork)]
    const lines = await link.step('branch', '', now, known, ...named, '', '', reportedBy, behindFork, ...channels)
    const newest = parseTold(lines as string[]).history.at(-1)?.epoch ?? ''
    if (newest === epoch || newest === known) return
    // Another hub has opened a branch first. Its report may be smaller, so this hub reports once more.
    known = newest
    reportedBy = newest
  }
}

// Each further round means that another hub has opened a branch between two calls.
const rounds = 5

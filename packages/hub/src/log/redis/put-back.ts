import { createEpoch, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import { parseTold } from './branches.ts'
import { positionText } from './entry.ts'
import type { Link } from './link.ts'
import type { KnownState } from './state.ts'

/**
 * An older copy of the log was put back under this hub, and another hub published to it before this one looked. No branch tells
 * the lost events from those that follow, so the channels that had them are put on record by a branch that opens now.
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
  let known = state.epoch
  let reportedBy = ''
  for (let round = 0; round < rounds; round += 1) {
    const epoch = createEpoch(environment.random)
    const named = [epoch, String(drawBranchStep(environment.random)), positionText(state.seen ?? fork)]
    const spare = createEpoch(environment.random)
    const lines = await link.step('branch', now, known, ...named, spare, '', reportedBy, ...channels)
    const newest = parseTold(lines as string[]).history.at(-1)?.epoch ?? ''
    if (newest === epoch || newest === known) return
    // Another hub was quicker. It may have reported less.
    known = newest
    reportedBy = newest
  }
}

// As many hubs can open a branch between two calls before this one gives up its share of the report.
const rounds = 5

import { createEpoch, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import type { IdSwitch, NewIdFormat } from '../contract.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import { idsOf } from '../stored-formats.ts'
import { parseStoredHistory } from './branches.ts'
import { unavailable } from './checks.ts'
import { positionText } from './entry.ts'
import type { Ask, Link } from './link.ts'
import type { KnownState } from './state.ts'

export interface SwitchOptions {
  readonly ask: Ask
  readonly state: KnownState
  random(): number
  /** Brings the history up to date. */
  refresh(): Promise<void>
}

/**
 * Opens a branch on which the ids are written in the new format. Every answer of the script names the newest branch, so no hub
 * renders an event of that branch before it has learnt the format.
 */
export async function switchIds(options: SwitchOptions, format: NewIdFormat, dryRun: boolean): Promise<IdSwitch> {
  const { ask, state, random, refresh } = options
  for (let round = 0; round < rounds; round += 1) {
    await refresh()
    const { epoch, seen } = state
    const planned = planIdSwitch(state.formats, format, { lasting: true })
    if (!planned.isNew || dryRun) return planned.told(state.formats)
    const { maxSeq, minMs, maxMs } = planned.since(positionBehind(seen as Position)).range
    const opened = createEpoch(random)
    const branch = [opened, String(drawBranchStep(random))]
    const version = format.version === undefined ? '' : ` ${format.version}`
    const range = [String(maxSeq), String(minMs), String(maxMs)]
    const lines = await ask('ids', epoch, ...branch, idsOf(format.codec), version, ...range)
    state.adopt(parseStoredHistory(lines as string[]))
    // Where the branch is missing, another hub has opened one in between, and the step did nothing.
    if (state.history.some((known) => known.epoch === opened)) return planned.told(state.formats)
  }
  throw unavailable('other hubs open branches all the time')
}

/**
 * Reports a loss after an older copy of the log was put back, and another hub published to the copy before this hub
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
    const newest = parseStoredHistory(lines as string[]).history.at(-1)?.epoch ?? ''
    if (newest === epoch || newest === known) return
    // Another hub has opened a branch first. Its report may be smaller, so this hub reports once more.
    known = newest
    reportedBy = newest
  }
}

// Each further round means that another hub has opened a branch between two calls.
const rounds = 5

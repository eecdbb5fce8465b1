import { createEpoch, type Position } from '@rejoin/protocol'
import { drawBranchStep } from '../branch-step.ts'
import type { IdSwitch, NewIdFormat } from '../contract.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import { idsOf } from '../stored-formats.ts'
import { parseTold } from './branches.ts'
import { unavailable } from './checks.ts'
import type { Ask } from './registry.ts'
import type { KnownState } from './state.ts'

export interface SwitchOptions {
  readonly ask: Ask
  readonly state: KnownState
  random(): number
  /** Brings the history up to date. */
  refresh(): Promise<void>
  /** Resolves when the switch is as safe as an answered publish. */
  confirmed(): Promise<void>
}

/**
 * Opens a branch on which the ids are written in the new format. Every answer of the script names the newest branch, so no hub
 * renders an event of that branch before it has learnt the format.
 */
export async function switchIds(options: SwitchOptions, format: NewIdFormat, dryRun: boolean): Promise<IdSwitch> {
  const { ask, state, random, refresh, confirmed } = options
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
    state.adopt(parseTold(lines as string[]))
    // Where the branch is missing, another hub has opened one in between, and the step did nothing.
    if (state.history.some((known) => known.epoch === opened)) {
      await confirmed()
      return planned.told(state.formats)
    }
  }
  throw unavailable('other hubs open branches all the time')
}

// Each further round means that another hub has opened a branch between two calls.
const rounds = 5

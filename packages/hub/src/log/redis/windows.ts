import { isPattern, latest, type Position, prefixOf } from '@rejoin/protocol'
import type { Window } from '../contract.ts'
import { endedWindow } from '../ended.ts'
import { lossOf, sumWindows, windowOfForgotten } from '../window.ts'
import { lossRecordedAt } from './branches.ts'
import { type Ask, type KnownChannel, registryPages, windowsOf } from './registry.ts'
import type { KnownState } from './state.ts'

/** The windows of channels and patterns, in the order asked for. */
export async function windowsOfSelectors(
  ask: Ask,
  selectors: readonly string[],
  state: Pick<KnownState, 'base' | 'history'>,
): Promise<readonly Window[]> {
  const channels = selectors.filter((selector) => !isPattern(selector))
  const known = await windowsOf(ask, channels)
  const windows = new Map(known.channels.map((it) => [it.channel, windowIn(it, state, known.forgottenThrough)]))
  for (const selector of selectors.filter(isPattern)) {
    let sum: Window | undefined
    for await (const { channels, forgottenThrough } of registryPages(ask, prefixOf(selector))) {
      const inPage = channels.map((channel) => windowIn(channel, state, forgottenThrough))
      sum = sumWindows(sum ?? windowOfForgotten(selector, forgottenThrough), inPage)
      sum = { ...sum, trimmedThrough: latest(sum.trimmedThrough, latest(forgottenThrough, state.base)) }
    }
    windows.set(selector, sum as Window)
  }
  return selectors.map((selector) => windows.get(selector) as Window)
}

/** The window of a channel as the contract has it, without the positions that only this log needs. */
export function windowIn(
  known: KnownChannel,
  { base, history }: Pick<KnownState, 'base' | 'history'>,
  forgottenThrough: Position,
): Window {
  const { newestPosition: _newest, invalidatedThrough, previous: _previous, ...window } = known
  const isRolledBack = lossRecordedAt(history, window.trimmedThrough) !== undefined
  const { lost } = lossOf(known, forgottenThrough)
  const loss = isRolledBack && lost !== 'forced' ? ({ lost: 'epoch' } as const) : lost ? { lost } : {}
  const ended = window.ended && endedWindow(window.ended, invalidatedThrough)
  return { ...window, ...ended, trimmedThrough: latest(window.trimmedThrough, base), ...loss }
}

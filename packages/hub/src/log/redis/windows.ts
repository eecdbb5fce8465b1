import { isPattern, latest, prefixOf } from '@rejoin/protocol'
import type { Window } from '../contract.ts'
import { sumWindows } from '../window.ts'
import { type Ask, type KnownChannel, registryPages, windowsOf } from './registry.ts'
import type { KnownState } from './state.ts'

/** The windows of channels, and of patterns as one each. The log may become another one while it is asked. */
export async function windowsOfNames(
  ask: Ask,
  names: readonly string[],
  state: Pick<KnownState, 'base'>,
): Promise<readonly Window[]> {
  const channels = names.filter((name) => !isPattern(name))
  const known = await windowsOf(ask, channels)
  const windows = new Map(known.channels.map((channel) => [channel.channel, windowIn(channel, state)]))
  for (const name of names.filter(isPattern)) {
    let sum: Window = { channel: name, events: 0, bytes: 0, trimmedThrough: state.base }
    for await (const { channels, forgottenThrough } of registryPages(ask, prefixOf(name))) {
      sum = sumWindows({ ...sum, trimmedThrough: latest(sum.trimmedThrough, forgottenThrough) }, channels)
    }
    windows.set(name, sum)
  }
  return names.map((name) => windows.get(name) as Window)
}

/** What others may know of a channel. */
export function windowIn(
  { newestPlace: _newest, voidThrough: _void, ...window }: KnownChannel,
  { base }: Pick<KnownState, 'base'>,
): Window {
  return { ...window, trimmedThrough: latest(window.trimmedThrough, base) }
}

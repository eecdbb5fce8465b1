/** How often each thing happened that a simulation is there for. One that never happens proves nothing. */
export const faultKinds = [
  'crash of a hub',
  'pause of a hub',
  'delayed tail',
  'tail out of its feed',
  'trim during a read',
  'rollback',
  'failover with another clock',
  'two masters',
  'loss put on record',
  'loss of the whole log',
  'older copy put back',
  'log rejected at opening',
  'invalidation',
  'slow sink',
  'stalled reader given up',
  'clock step back',
  'clock step forward',
  'revocation',
  'drain',
  'cut',
  'cut mid-frame',
  'half-open connection',
  'reconnect to another node',
  'stripped header',
  'publish sent twice',
  'publish without answer',
  'new channel',
  'end of a channel',
  'end lost by a rollback',
  'rejected, because it has ended',
  'live event',
  'retained value forgotten',
  'poll cut',
] as const

export const joinPaths = [
  'fresh, from now',
  'fresh, from the earliest',
  'fresh, with the last few',
  'resumed from memory',
  'resumed from log blocks',
  'resumed on a later branch',
  'waited for the tail',
  'back from slow',
  'sent back by a jump of the tail',
  'checkpoint',
  'gap: expired',
  'gap: epoch',
  'gap: ahead',
  'gap: forced',
  'gap: unknown-id',
  'gap: version',
  'gap: replay-limit',
  'gap with a snapshot',
  'gap in mid-stream',
  'gap with retained values',
  'state compared, value by value',
  'reader of a pattern',
  'reader of overlapping names',
  'reader that is shown channels',
  'reader that polls',
  'poll without news',
  'live event delivered',
  'finished, in band',
  'finished, by status',
  'back after the end',
] as const

export type Happening = (typeof faultKinds)[number] | (typeof joinPaths)[number]

export type Tally = Map<Happening, number>

export function createTally(): Tally {
  return new Map([...faultKinds, ...joinPaths].map((kind) => [kind, 0]))
}

export function addTally(total: Tally, more: Tally): void {
  for (const [kind, count] of more) total.set(kind, (total.get(kind) ?? 0) + count)
}

export function formatTally(tally: Tally): string {
  const rows = (kinds: readonly Happening[]) =>
    kinds.map((kind) => `  ${kind.padEnd(32)} ${String(tally.get(kind)).padStart(9)}`)
  return ['faults', ...rows(faultKinds), 'paths', ...rows(joinPaths)].join('\n')
}

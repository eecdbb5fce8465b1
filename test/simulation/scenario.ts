import { sequence, ulid, uuidv7 } from '@rejoin/protocol'
import type { Chance } from './virtual-world.ts'

/** Everything about a history that is settled before it begins. Small numbers, so that bounds are hit all the time. */
export type Scenario = ReturnType<typeof drawScenario>

export function drawScenario(chance: Chance, seed: number) {
  const channels = ['a', 'b', 'c/d', 'c/e', 'c/f/g'].slice(0, chance.whole(1, 5))
  return {
    channels,
    /** Channels and patterns that retain their newest values. */
    retain: chance.pick([[], [], ['a'], ['c/*'], ['a', 'c/*'], ['*']] as string[][]),
    /** How likely it is that a publish opens a new channel, ends one, or is for those who are here only. */
    opens: chance.pick([0, 0, 0.05]),
    ends: chance.pick([0, 0, 0.05, 0.2]),
    live: chance.pick([0, 0, 0.2]),
    nodes: chance.whole(1, 3),
    readers: chance.whole(2, 5),
    activeMs: chance.between(4_000, 14_000),
    codec: chance.pick([ulid, ulid, uuidv7, sequence])(),
    window: { maxEvents: chance.pick([4, 10, 40, 1000]), maxAgeMs: chance.pick([2_000, 10_000, 300_000]) },
    feedEvents: chance.pick([5, 1000, 1000]),
    pageEvents: chance.pick([3, 10, 1000]),
    logLatencyMs: chance.pick([1, 10, 60]),
    connectionLatencyMs: chance.pick([1, 20, 80]),
    budgetBytes: chance.pick([300, 2_000, 65_536]),
    hotBytes: chance.pick([1, 3_000, 1_000_000]),
    heartbeatMs: 5_000,
    stallTimeoutMs: chance.pick([4_000, 30_000]),
    maxReplayEvents: chance.happens(0.1) ? 5 : Number.POSITIVE_INFINITY,
    snapshots: chance.happens(0.5),
    snapshotMs: chance.pick([5, 300]),
    /** Between two publishes, on average. */
    publishEveryMs: chance.pick([50, 120, 400]),
    /** Between two faults, on average. */
    faultEveryMs: chance.pick([120, 300, 1_000]),
    /** Faults that can happen at all: a history with few kinds of them goes deeper into each. */
    faults: [...faultsOf(chance), ...(hasTwoMasters(seed) ? twoMasters : [])],
  }
}

// By the seed, and not by chance: the other histories stay as they were before there were two masters.
const hasTwoMasters = (seed: number) => seed % 7 === 6
const twoMasters = ['split', 'split', 'fail over', 'fail over'] as const

export const faults = [
  'crash',
  'pause',
  'delay tail',
  'trim',
  'roll back',
  'wipe',
  'invalidate',
  'stall',
  'step clock',
  'revoke',
  'drain',
  'cut',
  'freeze',
] as const

export type Fault = (typeof faults)[number] | (typeof twoMasters)[number]

function faultsOf(chance: Chance): readonly Fault[] {
  const drawn = chance.happens(0.3) ? [...faults] : chance.some(faults)
  // A cut is what it is all about; without one nobody ever comes back.
  const weighted: Fault[] = [...drawn, 'cut', 'cut']
  // Losing everything ends so much that it has to be rare.
  return weighted.includes('wipe') && chance.happens(0.7) ? weighted.filter((fault) => fault !== 'wipe') : weighted
}

import type { Invariant } from './judge.ts'
import type { Patch } from './mutant-plugin.ts'
import type { LogFlaw } from './simulated-log.ts'

/** A hub, a client or a log with one mistake that is easy to make. The simulation has to see each of them. */
export interface Mutant {
  readonly name: string
  readonly mistake: string
  readonly caughtBy: Invariant
  /**
   * The first seed that is played: the one that caught this mutant last, so that the search is short. Others are played when
   * a change of the sources has made of that seed another history.
   */
  readonly from?: number
  /** Where its sources differ. */
  readonly patches?: readonly Patch[]
  /** How its log differs. */
  readonly flaw?: LogFlaw
}

const session = 'hub/src/hub/read/reader-session.ts'
const cursor = 'hub/src/hub/read/session-cursor.ts'
const greeting = 'hub/src/hub/read/greeting.ts'
const gap = 'hub/src/hub/read/gap.ts'
const segments = 'hub/src/hub/read/segments.ts'
const audience = 'hub/src/hub/live/audience.ts'
const hotWindow = 'hub/src/hub/read/hot-window.ts'
const blocks = 'hub/src/hub/read/blocks.ts'
const live = 'hub/src/hub/live/live.ts'
const joinInThisStep = '    if (!live.join(this, this.cursor.at)) return false\n'

export const mutants: readonly Mutant[] = [
  {
    name: 'replay-then-now',
    mistake: 'reads the past from the log, then goes live from whatever is newest by then',
    caughtBy: 'unannounced-gap',
    from: 8,
    patches: [
      {
        file: session,
        find: `      if (!slices.hasTime()) break
    }
`,
        replace: `      if (!slices.hasTime()) break
    }
    const { live } = this.#context
    if (this.mode === 'replaying' && !this.full && live.join(this, live.head)) {
      this.mode = 'live'
      this.#busy = false
      return
    }
`,
      },
    ],
  },
  {
    name: 'tail-from-now',
    mistake: 'tails the log by asking for "what is new as of now" until something comes',
    caughtBy: 'unannounced-gap',
    from: 4,
    flaw: 'tail-from-now',
  },
  {
    name: 'copy-taken-for-the-log',
    mistake: 'opens an older copy of a log as if it were the one that was closed last',
    caughtBy: 'unannounced-gap',
    from: 15,
    flaw: 'copy-taken-for-the-log',
  },
  {
    name: 'oldest-as-edge',
    mistake: 'compares a cursor with the oldest event that is held, not with the newest that is gone',
    caughtBy: 'false-gap',
    flaw: 'oldest-as-edge',
  },
  {
    name: 'any-cursor-is-in-the-window',
    mistake: 'takes an id of another branch, or an id ahead of everything, for a position of this log',
    caughtBy: 'unannounced-gap',
    from: 10,
    patches: [
      {
        file: 'protocol/src/cursor.ts',
        find: `  if (!survivor) return gap('epoch')
  if (!isSame(survivor, id.position)) return { ...gap('epoch'), survivor }
  return isAfter(id.position, log.head) ? gap('ahead') : { ok: true, position: id.position }`,
        replace: `  if (!survivor) return { ok: true, position: id.position }
  return { ok: true, position: id.position }`,
      },
    ],
  },
  {
    name: 'snapshot-before-its-position',
    mistake: 'takes the snapshot first and notes its position afterwards',
    caughtBy: 'stale-snapshot',
    from: 39,
    patches: [
      {
        file: 'hub/src/hub/read/snapshot.ts',
        find: 'call.resolve({ at, state:',
        replace: 'call.resolve({ at: live.head, state:',
      },
    ],
  },
  {
    name: 'subscribe-after-the-replay',
    mistake: 'joins the live readers in a turn after the one in which it had caught up',
    caughtBy: 'unannounced-gap',
    from: 8,
    patches: [
      {
        file: session,
        find: joinInThisStep,
        replace: `    this.#context.environment.endOfTurn(() => this.mode === 'live' && live.join(this, live.head))
`,
      },
    ],
  },
  {
    name: 'limit-then-live',
    mistake: 'takes a page that its limit cut short for all there is',
    caughtBy: 'unannounced-gap',
    from: 14,
    patches: [
      {
        file: blocks,
        find: 'through: page.completeThrough,',
        replace: 'through,',
      },
    ],
  },
  {
    name: 'append-in-steps',
    mistake: 'draws the number, stores the entry and announces it in steps of their own',
    caughtBy: 'unannounced-gap',
    from: 1,
    flaw: 'append-in-steps',
  },
  {
    name: 'attach-after-an-await',
    mistake: 'asks the log one more thing between having caught up and joining the live readers',
    caughtBy: 'unannounced-gap',
    from: 6,
    patches: [
      {
        file: session,
        find: joinInThisStep,
        replace: `    void this.#context.log
      .windows(this.subscription.selectors)
      .then(() => this.mode === 'live' && live.join(this, live.head))
`,
      },
    ],
  },
  {
    name: 'two-buffers-per-turn',
    mistake: 'writes a turn channel by channel',
    caughtBy: 'unannounced-gap',
    from: 6,
    patches: [
      {
        file: audience,
        find: `    deliver(frames, moment, onFull) {
`,
        replace: `    deliver(all, moment, onFull) {
      for (const name of new Set(all.map((frame) => frame.channel))) {
      const frames = all.filter((frame) => frame.channel === name)
`,
      },
      {
        file: audience,
        find: `    },
    checkpoint(`,
        replace: `      }
    },
    checkpoint(`,
      },
    ],
  },
  {
    name: 'hello-at-the-head',
    mistake: 'greets a reader whose cursor has expired with the id of the head',
    caughtBy: 'moved-cursor',
    patches: [
      {
        file: session,
        find: 'const hello = { resumed: false, id: undefined,',
        replace: 'const hello = { resumed: false, id: this.#context.idAt(this.#context.live.head),',
      },
    ],
  },
  {
    name: 'verdict-before-the-read',
    mistake: 'looks for a gap, and reads afterwards',
    caughtBy: 'unannounced-gap',
    from: 750,
    flaw: 'verdict-before-the-read',
  },
  {
    name: 'read-past-the-applied-head',
    mistake: 'reads up to the head of the log, which the tail of this hub has not reached',
    caughtBy: 'duplicate',
    from: 115,
    patches: [
      {
        file: segments,
        find: `      const segment = readBlocks(subscription, cursor.position)
`,
        replace: `      const segment = (log as Log).head().then((head) => readBlocks(subscription, cursor.position, head))
`,
      },
      {
        file: segments,
        find: 'function readBlocks(subscription: Subscription, cursor: Position): Segment | Promise<Segment> {',
        replace: 'function readBlocks(subscription, cursor, head = live.head.position) {',
      },
      {
        file: segments,
        find: 'blocks.read(name, cursor, live.head.position)',
        replace: 'blocks.read(name, cursor, head)',
      },
      {
        file: session,
        find: 'if (isAfter(at.position, live.head.position)) return',
        replace: 'if (isAfter(at.position, live.head.position) && false) return',
      },
    ],
  },
  {
    name: 'silent-rollback',
    mistake: 'loses its newest entries and goes on without a new branch',
    caughtBy: 'unannounced-gap',
    from: 8,
    flaw: 'silent-rollback',
  },
  {
    name: 'dedup-without-epoch',
    mistake: 'compares ids without their epoch in the client, and remembers them beyond a gap',
    caughtBy: 'unannounced-gap',
    from: 300,
    patches: [
      {
        file: 'client/src/recent-ids.ts',
        find: '  return (id) => {\n',
        replace: `  return (given) => {
    const id = given.replace(/-[0-9a-z]{8}$/, '')
`,
      },
      {
        file: 'client/src/receiver.ts',
        find: '      isNew = createRecentIds()\n',
        replace: '',
      },
    ],
  },
  {
    name: 'off-by-one-at-the-edge',
    mistake: 'claims that the hot window covers the event that it has just let go',
    caughtBy: 'unannounced-gap',
    from: 1,
    patches: [
      {
        file: hotWindow,
        find: 'channel.coveredAfter = latest(channel.coveredAfter, frame.position)',
        replace: 'channel.coveredAfter = latest(channel.coveredAfter, frame.previous)',
      },
    ],
  },
  {
    name: 'jump-ignored',
    mistake: 'takes the next batch of the tail for a continuation, whatever it says it continues',
    caughtBy: 'unannounced-gap',
    from: 45,
    patches: [
      {
        file: live,
        find: 'if (!isSamePoint(from, head)) lostPosition(from)',
        replace: 'if (batch.events.length === 0) lostPosition(from)',
      },
    ],
  },
  {
    name: 'rollback-not-told',
    mistake: 'reads on from a position that the log has lost, and finds nothing missing',
    caughtBy: 'unannounced-gap',
    from: 16,
    patches: [
      {
        file: cursor,
        find: '    if (!survivor) return false\n',
        replace: '    if (!survivor) return true\n',
      },
    ],
  },
  {
    name: 'revocation-ignored',
    mistake: 'goes on sending to a reader whose rights were revoked',
    caughtBy: 'private-leak',
    from: 11,
    patches: [
      {
        file: 'hub/src/hub/create-hub.ts',
        find: '    presence.revoke(revocation.subject)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'key-not-passed-on',
    mistake: 'forgets the idempotency key on the way to the log',
    caughtBy: 'published-twice',
    patches: [
      {
        file: 'hub/src/hub/publish/publishing.ts',
        find: 'once ? { token, once } : { token }',
        replace: '{ token }',
      },
    ],
  },
  {
    name: 'pattern-covered-though-evicted',
    mistake: 'claims that the hot window covers a pattern, and forgets what it has let go of its channels',
    caughtBy: 'unannounced-gap',
    from: 1,
    patches: [
      { file: hotWindow, find: '    allCoveredAfter = latest(allCoveredAfter, frame.position)\n', replace: '' },
    ],
  },
  {
    name: 'patterns-not-sent-back',
    mistake: 'sends readers of an invalidated channel back to the log, but not the readers of patterns over it',
    caughtBy: 'unannounced-gap',
    from: 60,
    patches: [
      {
        file: audience,
        find: 'return [...audiencesOf(channel)].flatMap(',
        replace: 'return [...(bySelector.get(channel) ?? [])].flatMap(',
      },
    ],
  },
  {
    name: 'twice-under-two-names',
    mistake: 'sends an event once for each name that covers it',
    caughtBy: 'duplicate',
    from: 4,
    patches: [
      {
        file: 'hub/src/hub/live/subscription.ts',
        find: 'withoutCovered([...new Set(selectors.map(checkSelector))])',
        replace: '(withoutCovered, [...new Set(selectors.map(checkSelector))])',
      },
    ],
  },
  {
    name: 'link-to-the-event-before',
    mistake: 'expects each event of a block to follow the one before it, whatever its channel',
    caughtBy: 'false-gap',
    from: 8,
    patches: [
      {
        file: blocks,
        find: 'const before = newest.get(channel) ?? after',
        replace: "const before = newest.get('') ?? after",
      },
      {
        file: blocks,
        find: 'newest.set(channel, position)\n    return isAfter(previous, before)',
        replace:
          "newest.set('', position)\n    return isAfter(previous, before) || (before !== after && isAfter(before, previous))",
      },
      { file: blocks, find: 'wholeAfter: broken.previous', replace: 'wholeAfter: broken.position' },
    ],
  },
  {
    name: 'live-event-kept',
    mistake: 'keeps a live event in the hot window',
    caughtBy: 'late-live',
    from: 8,
    patches: [{ file: live, find: "if (kind === 'event') hot.add(frame)", replace: 'hot.add(frame)' }],
  },
  {
    name: 'end-looked-up-first',
    mistake: 'looks whether a channel has ended, and appends afterwards',
    caughtBy: 'behind-the-end',
    from: 9,
    flaw: 'end-looked-up-first',
  },
  {
    name: 'ends-kept-after-a-jump',
    mistake: 'goes on believing in an end that the log may have lost',
    caughtBy: 'false-finish',
    from: 539,
    patches: [{ file: 'hub/src/hub/create-hub.ts', find: '      ends.clear()\n', replace: '' }],
  },
  {
    name: 'finished-before-caught-up',
    mistake: 'sends a reader away for good as soon as its channels have ended',
    caughtBy: 'false-finish',
    from: 703,
    patches: [
      {
        file: session,
        find: 'return hasEverything(this.cursor.at.position, ends.knows(selectors) ? ends.of(selectors) : this.#end)',
        replace: 'return (ends.knows(selectors) ? ends.of(selectors) : this.#end) !== undefined',
      },
    ],
  },
  {
    name: 'retained-before-its-position',
    mistake: 'reads the retained values first and notes their position afterwards',
    caughtBy: 'wrong-state',
    from: 808,
    patches: [
      {
        file: gap,
        find: '    const taken: Snapshot = isStateWanted ? await snapshots.take(channels, notBefore, isGone) : atHead\n',
        replace: `    const early = isStateWanted ? await context.retained(channels) : undefined
    const taken: Snapshot = isStateWanted ? await snapshots.take(channels, notBefore, isGone) : atHead
`,
      },
      { file: gap, find: 'isStateWanted ? context.retained(channels) : undefined', replace: 'early' },
    ],
  },
  {
    name: 'retained-at-a-later-position',
    mistake: 'sends retained values with a position that was noted after they were read',
    caughtBy: 'wrong-state',
    from: 933,
    patches: [
      {
        file: gap,
        find: 'oldest, state: {} }',
        replace: 'oldest, state: retained ? { retained } : {} }',
      },
    ],
  },
  {
    name: 'nothing-as-far-as-we-know',
    mistake: 'answers a poll that there is nothing, without asking the log',
    caughtBy: 'early-nothing',
    from: 53,
    patches: [
      {
        file: 'hub/src/hub/pull/poll.ts',
        find: '      await context.reachHead()\n',
        replace: '      if (false) await context.reachHead()\n',
      },
    ],
  },
  {
    name: 'judged-by-order',
    mistake:
      'takes a cursor of a lost branch for one of the newest branch, because its position is later than the fork',
    caughtBy: 'unannounced-gap',
    from: 293,
    patches: [
      {
        file: 'protocol/src/cursor.ts',
        find: 'return index === -1 ? undefined : survivorFrom(history, index, position)',
        replace: `if (index !== -1 && !isAfter((history.at(-1) as Branch).first, position)) return position
  return index === -1 ? undefined : survivorFrom(history, index, position)`,
      },
    ],
  },
  {
    name: 'branch-of-the-tail-ignored',
    mistake: 'keeps its readers live when the tail goes on on another branch, unless the position went back',
    caughtBy: 'unannounced-gap',
    from: 27,
    patches: [
      {
        file: live,
        find: 'if (!isSamePoint(from, head)) lostPosition(from)',
        replace: `if (from.branch.epoch !== head.branch.epoch && !isAfter(head.position, from.position)) head = from
    if (!isSamePoint({ ...from, branch: head.branch }, head)) lostPosition(from)`,
      },
    ],
  },
  {
    name: 'record-taken-for-survival',
    mistake: 'reads on from a lost position when the loss is on record, instead of from the fork',
    caughtBy: 'unannounced-gap',
    from: 286,
    patches: [
      {
        file: cursor,
        find: 'this.moveTo(pointAt(survivor))',
        replace: 'this.moveTo({ branch: newestBranch(log), position: this.at.position })',
      },
    ],
  },
  {
    name: 'record-ignored',
    mistake: 'alarms readers of channels that lost nothing, although the lost channels are on record',
    caughtBy: 'false-gap',
    from: 62,
    patches: [
      {
        file: 'protocol/src/history.ts',
        find: '    if (reported === undefined || isAfter(survivor, reported)) return undefined\n',
        replace: '    if (reported === undefined || isAfter(survivor, origin)) return undefined\n',
      },
      {
        file: 'protocol/src/history.ts',
        find: "import { comparePositions, isAfter, isSame, type Position } from './position.ts'",
        replace: "import { comparePositions, isAfter, isSame, origin, type Position } from './position.ts'",
      },
    ],
  },
  {
    name: 'one-branch-read-as-another',
    mistake: 'delivers a replay although the log went on on another branch during the read',
    caughtBy: 'unannounced-gap',
    from: 2344,
    patches: [
      {
        file: segments,
        find: '      if (!readOn) return true\n',
        replace: '      if (!readOn || log) return true\n',
      },
    ],
  },
  {
    name: 'record-ignored-by-those-here',
    mistake: 'alarms readers that are here when a loss comes to light, although their channels lost nothing',
    caughtBy: 'false-gap',
    from: 5361,
    patches: [
      {
        file: session,
        find: 'this.cursor.survives(this.#context)',
        replace: 'this.cursor.survives({ ...this.#context, isGreeted: !this.#greeting })',
      },
      { file: cursor, find: '  survives({ log, pointAt }', replace: '  survives({ log, pointAt, isGreeted }' },
      {
        file: cursor,
        find: '    if (!isSame(survivor, this.at.position)) {\n',
        replace: '    if (!isSame(survivor, this.at.position)) {\n      if (isGreeted) return false\n',
      },
    ],
  },
  {
    name: 'loss-trims',
    mistake: 'lets go of everything that a channel still has when one of its events was lost',
    caughtBy: 'deleted-survivor',
    from: 6,
    flaw: 'loss-trims',
  },
  {
    name: 'head-behind-a-mark',
    mistake: 'leads a reader of the past from a loss to the head, over the events in between',
    caughtBy: 'deleted-survivor',
    from: 76,
    patches: [
      {
        file: gap,
        find: 'const canGoOnAtMark = isMark &&',
        replace: 'const canGoOnAtMark = false && isMark &&',
      },
    ],
  },
  {
    name: 'mark-before-its-turn',
    mistake: 'announces the loss of one channel before it has sent what another channel has from before',
    caughtBy: 'skipped-survivor',
    from: 342,
    patches: [
      {
        file: segments,
        find: '    if (gaps.some(({ isMark }) => !isMark)) return mergeGaps(gaps)\n',
        replace: '    if (gaps.length > 0) return mergeGaps(gaps)\n',
      },
    ],
  },
  {
    name: 'beheaded-in-silence',
    mistake: 'gives a reader that asks for the beginning whatever is left of it, without a word',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: greeting,
        find: '    if (this.#lost) return this.#framesOfLoss(context, session, this.#lost, { id, first })\n',
        replace: '',
      },
    ],
  },
]

export function patchesOf(name: string): readonly Patch[] {
  return mutants.find((mutant) => mutant.name === name)?.patches ?? []
}

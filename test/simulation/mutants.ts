import type { Invariant } from './judge.ts'
import type { Patch } from './mutant-plugin.ts'
import type { LogFlaw } from './simulated-log.ts'

/** A hub, a client or a log with one mistake that is easy to make. The simulation has to see each of them. */
export interface Mutant {
  readonly name: string
  readonly mistake: string
  readonly caughtBy: Invariant
  /** Where its sources differ. */
  readonly patches?: readonly Patch[]
  /** How its log differs. */
  readonly flaw?: LogFlaw
}

const session = 'hub/src/hub/session.ts'
const audience = 'hub/src/hub/audience.ts'
const joinInThisStep = '    if (!live.join(this, this.#cursor)) return false\n'

export const mutants: readonly Mutant[] = [
  {
    name: 'replay-then-now',
    mistake: 'reads the past from the log, then goes live from whatever is newest by then',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: session,
        find: `      if (this.mode === 'replaying') this.#deliverReplay(replay)
`,
        replace: `      if (this.mode === 'replaying') this.#deliverReplay(replay)
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
    flaw: 'tail-from-now',
  },
  {
    name: 'oldest-as-edge',
    mistake: 'compares a cursor with the oldest event that is held, not with the newest that is gone',
    caughtBy: 'false-gap',
    flaw: 'oldest-as-edge',
  },
  {
    name: 'any-cursor-is-in-the-window',
    mistake: 'takes an id of another branch, or one ahead of everything, for a place of this log',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: 'protocol/src/cursor.ts',
        find: `  if (!survived(log.history, id)) return gap('epoch')
  return isAfter(id.position, log.head) ? gap('ahead') : { ok: true, position: id.position }`,
        replace: `  if (!survived(log.history, id)) return { ok: true, position: id.position }
  return { ok: true, position: id.position }`,
      },
    ],
  },
  {
    name: 'snapshot-before-its-place',
    mistake: 'takes the snapshot first and notes the place it stands at afterwards',
    caughtBy: 'stale-snapshot',
    patches: [
      {
        file: 'hub/src/hub/snapshot.ts',
        find: 'resolve({ position, state })',
        replace: 'resolve({ position: head(), state })',
      },
    ],
  },
  {
    name: 'subscribe-after-the-replay',
    mistake: 'joins the live readers in a turn after the one in which it had caught up',
    caughtBy: 'unannounced-gap',
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
    patches: [
      {
        file: 'hub/src/hub/blocks.ts',
        find: 'through: page.completeThrough,',
        replace: 'through,',
      },
    ],
  },
  {
    name: 'append-in-steps',
    mistake: 'draws the number, stores the entry and announces it in steps of their own',
    caughtBy: 'unannounced-gap',
    flaw: 'append-in-steps',
  },
  {
    name: 'attach-after-an-await',
    mistake: 'asks the log one more thing between having caught up and joining the live readers',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: session,
        find: joinInThisStep,
        replace: `    void this.#context.log
      .windows(this.subscription.channels)
      .then(() => this.mode === 'live' && live.join(this, live.head))
`,
      },
    ],
  },
  {
    name: 'two-buffers-per-turn',
    mistake: 'writes a turn channel by channel',
    caughtBy: 'unannounced-gap',
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
        find: 'this.#hello({ resumed: false })',
        replace: 'this.#hello({ resumed: false, id: idOf(live.head) })',
      },
    ],
  },
  {
    name: 'verdict-before-the-read',
    mistake: 'looks for a gap, and reads afterwards',
    caughtBy: 'unannounced-gap',
    flaw: 'verdict-before-the-read',
  },
  {
    name: 'read-past-the-applied-head',
    mistake: 'reads up to the head of the log, which the tail of this hub has not reached',
    caughtBy: 'duplicate',
    patches: [
      {
        file: session,
        find: 'readReplay(blocks, this.subscription.channels, from, live.head)',
        replace: 'readReplay(blocks, this.subscription.channels, from, await (this.#context.log as Log).head())',
      },
      {
        file: session,
        find: 'if (isAfter(this.#cursor, this.#context.live.head)) {',
        replace: 'if (isAfter(this.#cursor, this.#context.live.head) && false) {',
      },
    ],
  },
  {
    name: 'silent-rollback',
    mistake: 'loses its newest entries and goes on without a new branch',
    caughtBy: 'unannounced-gap',
    flaw: 'silent-rollback',
  },
  {
    name: 'dedup-without-epoch',
    mistake: 'compares ids without their epoch in the client, and remembers them beyond a gap',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: 'client/src/recent-ids.ts',
        find: '    has: (id) => ids.has(id) || older.has(id),\n    add(id) {\n',
        replace: `    has: (id) => ids.has(id.replace(/-[0-9a-z]{8}$/, '')) || older.has(id.replace(/-[0-9a-z]{8}$/, '')),
    add(given) {
      const id = given.replace(/-[0-9a-z]{8}$/, '')
`,
      },
      {
        file: 'client/src/recent-ids.ts',
        find: '      ids = older = new Set()\n',
        replace: '',
      },
    ],
  },
  {
    name: 'off-by-one-at-the-edge',
    mistake: 'claims that the hot window covers the event that it has just let go',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: 'hub/src/hub/hot-window.ts',
        find: 'channel.coveredAfter = latest(channel.coveredAfter, frame.position)',
        replace: 'channel.coveredAfter = latest(channel.coveredAfter, frame.previous)',
      },
    ],
  },
  {
    name: 'jump-ignored',
    mistake: 'takes the next batch of the tail for a continuation, whatever it says it continues',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: 'hub/src/hub/live.ts',
        find: '      if (!isSame(batch.after, head)) lostPlace(batch.after)\n',
        replace: '      if (batch.events.length === 0) lostPlace(batch.after)\n',
      },
    ],
  },
  {
    name: 'rollback-not-told',
    mistake: 'reads on from a place that the log has lost, and finds nothing missing',
    caughtBy: 'unannounced-gap',
    patches: [
      {
        file: session,
        find: 'return isLost(history, position) && !isLost(history, this.#context.live.head)',
        replace: 'return isLost(history, position) && isLost(history, this.#context.live.head) && false',
      },
    ],
  },
  {
    name: 'revocation-ignored',
    mistake: 'goes on sending to a reader whose rights were revoked',
    caughtBy: 'private-leak',
    patches: [
      {
        file: 'hub/src/hub/hub.ts',
        find: 'revoke: presence.revoke,',
        replace: 'revoke: () => undefined,',
      },
    ],
  },
  {
    name: 'key-not-passed-on',
    mistake: 'forgets the idempotency key on the way to the log',
    caughtBy: 'published-twice',
    patches: [
      {
        file: 'hub/src/hub/publishing.ts',
        find: '{ token, ...onceOnly(entries, publishing) }',
        replace: '{ token, ...(onceOnly(entries, publishing), {}) }',
      },
    ],
  },
]

export function patchesOf(name: string): readonly Patch[] {
  return mutants.find((mutant) => mutant.name === name)?.patches ?? []
}

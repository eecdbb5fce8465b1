import { limitMends } from './limits.ts'

/** A fault of a hub or a log that was mended, as the change of the sources that brings it back, and the test that has to notice. */
export interface Mend {
  readonly name: string
  readonly mistake: string
  readonly patches: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  readonly caughtBy: { readonly project: 'unit' | 'long' | 'services'; readonly file: string; readonly test: string }
}

const hub = 'hub/src/hub'
const lmdb = 'hub/src/log/lmdb'
const redis = 'hub/src/log/redis'
const unit = (file: string, test: string) => ({ project: 'unit' as const, file: `packages/hub/test/${file}`, test })
const long = (file: string, test: string) => ({ project: 'long' as const, file: `packages/hub/test/${file}`, test })
const service = (file: string, test: string) => ({ project: 'services' as const, file: `test/services/${file}`, test })

/** Faults that the simulation cannot play, because its log is a model, or plays too rarely. Its own are in test/simulation/mutants.ts. */
export const mends: readonly Mend[] = [
  {
    name: 'end-that-was-forgotten',
    mistake: 'goes on calling a channel ended that the log has forgotten, and that has events again',
    patches: [
      {
        file: `${hub}/create-hub.ts`,
        find: '    onEvent: ends.published,\n',
        replace: '    onEvent: () => undefined,\n',
      },
    ],
    caughtBy: long('hub/read/ends.test.ts', 'goes on for all readers, once it has an event again'),
  },
  {
    name: 'last-events-of-an-emptied-log',
    mistake: 'begins a replay of the last events on a branch that was emptied with Redis',
    patches: [
      {
        file: `${redis}/log.ts`,
        find: 'wholeAfter: latest(page.wholeAfter, this.#opened.state.base)',
        replace: 'wholeAfter: latest(page.wholeAfter, origin)',
      },
    ],
    caughtBy: service('redis/faults.test.ts', 'asks for the last events gets those that there are'),
  },
  {
    name: 'end-of-the-file-counted',
    mistake: 'takes a page that LMDB assigned and never wrote for the missing end of the file',
    patches: [
      {
        file: `${lmdb}/files/pages.ts`,
        find: '  const buffers: Buffer[] = []\n',
        replace: "  const buffers: Buffer[] = []\n  if (pages <= lastPage) throw new Damage('its end is missing')\n",
      },
    ],
    caughtBy: long('log/lmdb/files/restart.test.ts', 'a log that let go of all its events opens again'),
  },
  {
    name: 'same-branch-after-a-restart',
    mistake: 'goes on with the branch of the last start, also in an older copy of the folder',
    patches: [
      {
        file: `${lmdb}/files/opening.ts`,
        find: '  return startBranch(store, { ...found, certain, isCopy: copyMark !== undefined }, environment)\n',
        replace: '  return copyMark ? startBranch(store, { ...found, certain, isCopy: true }, environment) : found\n',
      },
    ],
    caughtBy: long('log/lmdb/files/copies.test.ts', 'that an older copy was put back into tells every reader'),
  },
  {
    name: 'next-number-for-every-copy',
    mistake: 'gives the next branch the next number, in each copy of a log the same',
    patches: [
      {
        file: 'hub/src/log/branch-step.ts',
        find: '  return 1 + Math.floor(random() * mostSteps)\n',
        replace: '  return 1 + Math.floor(random() * 0 * mostSteps)\n',
      },
    ],
    caughtBy: long(
      'log/lmdb/files/copies.test.ts',
      'a folder with snowflake ids that was cloned gives no id of the other',
    ),
  },
  {
    name: 'values-of-another-branch',
    mistake: 'sends values that were read on a new branch with a position of the branch before it',
    patches: [
      {
        file: `${hub}/read/gap.ts`,
        find: 'if (isGone() || newestBranch(log).epoch === epoch) return {',
        replace: 'if (epoch) return {',
      },
    ],
    caughtBy: unit('hub/read/fresh-start.test.ts', 'values that were read on a new branch are not sent'),
  },
  {
    name: 'id-of-the-branch-of-today',
    mistake: 'renders the id of an event on the newest branch, and not on the branch that the event came on',
    patches: [
      {
        file: `${hub}/create-hub.ts`,
        find: 'framesOf(events, isHeard, (position) => idAt({ position, branch }))',
        replace: 'framesOf(events, isHeard, (position) => (branch ? idOf(position) : idAt({ position, branch })))',
      },
    ],
    caughtBy: unit(
      'hub/read/failover.test.ts',
      'an event that the old master still sends has the id that it got there',
    ),
  },
  {
    name: 'one-loss-told-twice',
    mistake: 'announces a gap at the head of the hub, although the log has lost more than the hub has heard of',
    patches: [
      {
        file: `${hub}/read/gap.ts`,
        find: '  await waitForEnd(context, session, wholeAfter)\n',
        replace: '',
      },
    ],
    caughtBy: unit('hub/read/opening.test.ts', 'past all that its hub has heard of is told once'),
  },
  {
    name: 'block-up-to-a-lost-head',
    mistake: 'keeps what was read up to the head of a branch that was lost meanwhile',
    patches: [
      {
        file: 'hub/src/hub/read/blocks.ts',
        find: "if (block.kind === 'frames' && asOf === invalidations) keep(name, block)",
        replace: "if (block.kind === 'frames' && asOf <= invalidations) keep(name, block)",
      },
    ],
    caughtBy: unit('hub/read/blocks.test.ts', 'is kept for nobody'),
  },
  {
    name: 'later-answers-thrown-away',
    mistake: 'throws away each answer about the end of a channel while somebody waits who asked before an invalidation',
    patches: [
      {
        file: `${hub}/read/ends.ts`,
        find: '(invalidatedMeanwhile.get(channel) ?? 0) > began',
        replace: '(invalidatedMeanwhile.get(channel) ?? 0) > 0 * began',
      },
    ],
    caughtBy: long('hub/read/ends.test.ts', 'although others still wait'),
  },
  {
    name: 'look-for-every-bad-cursor',
    mistake: 'looks at every channel below a pattern for each reader with a bad cursor',
    patches: [
      {
        file: `${hub}/read/gap.ts`,
        find: 'isHere && channels.some(isPattern) ? [] : channels',
        replace: 'isHere && channels.some(isPattern) ? channels : channels',
      },
    ],
    caughtBy: unit('hub/read/patterns.test.ts', 'are told without a look at every channel'),
  },
  {
    name: 'look-of-its-own',
    mistake: 'lets each of the readers that come together look at every channel',
    patches: [{ file: `${hub}/read/channel-window.ts`, find: '    if (!looking) {\n', replace: '    {\n' }],
    caughtBy: unit('hub/read/patterns.test.ts', 'share one look'),
  },
  {
    name: 'nothing-more-as-far-as-we-know',
    mistake: 'says that there is nothing to come back for when its own tail has brought nothing more',
    patches: [
      {
        file: `${hub}/read/opening.ts`,
        find: 'return hasEverything(live.head.position, ends.of(selectors))',
        replace: 'return ends.of(selectors) !== undefined',
      },
    ],
    caughtBy: long('hub/read/ends.test.ts', 'for which the log holds events that this hub has yet to hear'),
  },
  {
    name: 'search-past-another-head',
    mistake: 'searches on for the last events until it comes to a head that the next master never had',
    patches: [{ file: `${hub}/read/opening.ts`, find: '      if (next.value.isHead) return\n', replace: '' }],
    caughtBy: unit('hub/read/failover.test.ts', 'is served, and the hub does not search for ever'),
  },
  {
    name: 'keys-forgotten-by-number',
    mistake: 'forgets an idempotency key because many came after it',
    patches: [
      {
        file: 'hub/src/log/idempotency.ts',
        find: '(keys > maxKeys && ageMs > retryHorizonMs)',
        replace: 'keys > maxKeys',
      },
    ],
    caughtBy: unit('log/memory/log.test.ts', 'a key younger than ten minutes is not forgotten'),
  },
  {
    name: 'keys-forgotten-by-number-on-redis',
    mistake: 'forgets an idempotency key on Redis because many came after it',
    patches: [{ file: `${redis}/script/append.lua`, find: '(age > onceHorizonMs and ', replace: '(' }],
    caughtBy: service('redis/log.test.ts', 'a key younger than ten minutes is not forgotten'),
  },
  {
    name: 'end-forgotten-in-silence',
    mistake: 'forgets a channel on Redis with its end, and tells nobody from before the end',
    patches: [
      {
        file: `${redis}/script/upkeep.lua`,
        find: "      if it.ended ~= '-' then forgotten = latest(forgotten, string.match(it.ended, '^[^,]+')) end\n",
        replace: '',
      },
    ],
    caughtBy: service('redis/log.test.ts', 'a channel that ended is forgotten in the end'),
  },
  {
    name: 'loss-not-put-on-record',
    mistake: 'adopts a branch and keeps to itself which channels it saw something of beyond the fork',
    patches: [
      {
        file: `${redis}/handshake.ts`,
        find: '    const loss = isBehind ? ',
        replace: '    const loss = isBehind && !isBehind ? ',
      },
      {
        file: `${redis}/handshake.ts`,
        find: '    lines = await reportLoss(step, lines)\n',
        replace: '    void reportLoss\n',
      },
    ],
    caughtBy: service(
      'redis/split.test.ts',
      'a Redis that lost its newest events tells the readers of the channels concerned',
    ),
  },
  {
    name: 'loss-told-to-everybody',
    mistake: 'puts a loss on record for all channels, those that lost nothing included',
    patches: [
      { file: `${redis}/handshake.ts`, find: 'lost ? [...lost.keys()] : ', replace: 'lost && !lost ? [...lost] : ' },
    ],
    caughtBy: service(
      'redis/split.test.ts',
      'a Redis that lost its newest events tells the readers of the channels concerned',
    ),
  },
  {
    name: 'durability-read-once',
    mistake: 'reads how Redis flushes when it is opened, and answers by that for ever',
    patches: [
      {
        file: `${redis}/flushing.ts`,
        find: "!inRush || durability !== 'memory' || performance.now() - learntAt > rereadMs",
        replace: 'durability === undefined && !inRush && learntAt < rereadMs',
      },
    ],
    caughtBy: service(
      'redis/operation.test.ts',
      'an answered publish is called as safe as Redis is set at that moment',
    ),
  },
  {
    name: 'nameless-server-accepted',
    mistake: 'opens a log on a Redis that does not say which process answers',
    patches: [
      { file: `${redis}/checks.ts`, find: "    if (run !== '' && lineage !== '') return", replace: '    return' },
    ],
    caughtBy: unit('log/redis/checks.test.ts', 'is rejected, with the reason'),
  },
  {
    name: 'lineage-ignored',
    mistake: 'knows a server by its process alone, also after that has copied its data from elsewhere',
    patches: [
      {
        file: `${redis}/handshake.ts`,
        find: 'return a.run === b.run && a.lineage === b.lineage',
        replace: 'return a.run === b.run',
      },
    ],
    caughtBy: service('redis/operation.test.ts', 'a server that copied its data from a stale one is not vouched for'),
  },
  {
    name: 'copy-taken-for-the-log-that-was-left',
    mistake:
      'takes a log for the one that was left last, although a hub has come to it since and an older copy may be back',
    patches: [
      {
        file: `${redis}/witnesses.ts`,
        find: 'return known[0] === 1 && known[1] === 0',
        replace: 'return known[0] === 1',
      },
    ],
    caughtBy: service('redis/starts.test.ts', 'whatever hubs and operators do'),
  },
  {
    name: 'log-left-beside-another-hub',
    mistake: 'leaves the proof that the log is whole while another hub goes on with the log',
    patches: [
      {
        file: `${redis}/witnesses.ts`,
        find: 'if ((await othersOn(connection, process)).length > 0) return',
        replace: 'await othersOn(connection, process)',
      },
    ],
    caughtBy: service('redis/starts.test.ts', 'a hub that stops beside another one proves nothing'),
  },
  {
    name: 'branch-beside-a-missing-feed',
    mistake: 'opens a branch on a log whose feed is not there, as while a slot is moved',
    patches: [
      {
        file: `${redis}/handshake.ts`,
        find: "    if (hello.top === '') throw unavailable(noFeed(settings.prefix))\n",
        replace: '    void noFeed\n',
      },
    ],
    caughtBy: service('redis/operation.test.ts', 'a log whose feed is missing is unavailable'),
  },
  {
    name: 'two-servers-at-once',
    mistake: 'asks one server while its tail follows another one',
    patches: [
      {
        file: `${redis}/link.ts`,
        find: '    if (others.length > 0 && !isBelieved) throw new Elsewhere()\n    for (const { connection } of others) connection.destroy()\n',
        replace: '    void [others, isBelieved]\n',
      },
    ],
    caughtBy: unit('log/redis/link.test.ts', 'all connections lead to one server'),
  },
  {
    name: 'loss-that-trims',
    mistake: 'deletes every event of a channel in Redis when one of its events was lost',
    patches: [
      {
        file: `${redis}/script/upkeep.lua`,
        find: '  it.newest = newest\n',
        replace:
          "  redis.call('DEL', streamOf(channel))\n  it.newest, it.trimmed, it.base, it.count = newest, newest, it.total, 0\n",
      },
    ],
    caughtBy: service('redis/loss.test.ts', 'keeps the fifty before it'),
  },
  {
    name: 'later-loss-taken-for-this-one',
    mistake: 'takes a loss for recorded because its channel has lost something later, too',
    patches: [
      {
        file: `${redis}/script/upkeep.lua`,
        find: '  if isMark(log, since) and marksChannel(since, channel) then return true end',
        replace:
          '  for _, at in ipairs(marksOf(log)) do if not isAfter(since, at) and marksChannel(at, channel) then return true end end',
      },
    ],
    caughtBy: service('redis/loss.test.ts', 'after the next failover'),
  },
  {
    name: 'rolled-back-taken-for-emptied',
    mistake: 'takes a counting log that was rolled back to its first position for one that was emptied',
    patches: [
      {
        file: `${redis}/state.ts`,
        find: 'branch.epoch === stored[0]?.epoch',
        replace: 'branch.fork.ms + branch.fork.seq === 0',
      },
    ],
    caughtBy: service('redis/loss.test.ts', 'rolled back to its beginning'),
  },
  {
    name: 'replicas-read',
    mistake: 'asks the replicas of a Cluster where the client of the application does',
    patches: [{ file: `${redis}/client.ts`, find: "        scaleReads: 'master',\n", replace: '' }],
    caughtBy: unit('log/redis/client.test.ts', 'the connections of a Cluster ask its masters'),
  },
  ...limitMends,
]

/** The patches of the mend that is to be undone, none for no name. */
export function undoneBy(name: string | undefined): Mend['patches'] {
  return mends.find((mend) => mend.name === name)?.patches ?? []
}

import { expect, test } from 'vitest'
import type { Connection } from '../../../src/log/redis/client.ts'
import { createWitnesses } from '../../../src/log/redis/witnesses.ts'

const own = 'id=9 addr=127.0.0.1:9 name= db=0 idle=0'
const family = 'rejoin:%7Brejoin%7D%3A:'

test.each([
  ['another hub that asks every few seconds', `name=${family}other age=99 idle=2 flags=b db=0`, true],
  ['this hub itself', `name=${family}self age=99 idle=0 flags=N db=0`, false],
  ['a hub that vanished, whose connection Redis has not given up yet', `name=${family}other idle=5 db=0`, false],
  ['a hub on a log in another database', `name=${family}other idle=0 db=1`, false],
  ['a hub on a log with another prefix', 'name=rejoin:%7Bmine%7D%3A:other idle=0 db=0', false],
  ['no hub, but a client without a name', 'name= idle=0 db=0', false],
])('only another hub that follows the log vouches for it: %s', async (_, line, isWitness) => {
  const witnesses = createWitnesses('{rejoin}:', 'self')
  expect(await witnesses.areThere(answering({ INFO: own, LIST: `${own}\n${line}\n` }), 'run')).toBe(isWitness)
})

test('where Redis does not tell who is connected, nobody vouches for the log', async () => {
  const witnesses = createWitnesses('{rejoin}:', 'self')
  const silent = answering({})
  await witnesses.join(silent, 'run', async () => 'name')
  await expect(witnesses.leave(silent, 'run', async (left) => ({ left, epoch: '', last: '' }))).rejects.toThrow(
    'NOPERM',
  )
  expect(await witnesses.isAsLeft(silent, 'run', { left: 'name', epoch: '', last: '' })).toBe(false)
  expect(await witnesses.areThere(silent, 'run')).toBe(false)
})

function answering(answers: Record<string, string>): Connection {
  return {
    send: () => Promise.reject(new Error('NOPERM')),
    sendTo: async (_, [, command = '']) => answers[command] ?? Promise.reject(new Error('NOPERM')),
    destroy: () => undefined,
    over: new Promise(() => undefined),
  }
}

test.each([
  ['as the last hub left it', [1, 0], true],
  ['that a hub has come to since', [1, 1], false],
  ['that no hub left in this process of Redis', [0, 0], false],
])('the log is proved only as the last hub left it: a log %s (%j: %s)', async (_, known, isProved) => {
  const witnesses = createWitnesses('{rejoin}:', 'self')
  const log = { left: 'name', epoch: 'EPOCH', last: '1-0' }
  const answers = answering({ INFO: own, EXISTS: known as never })
  expect(await witnesses.isAsLeft(answers, 'run', log)).toBe(isProved)
  expect(await witnesses.isAsLeft(answers, 'run', { ...log, left: '' })).toBe(false)
})

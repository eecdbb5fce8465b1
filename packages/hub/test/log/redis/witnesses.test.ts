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
  await witnesses.join(silent, 'run')
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

import { RejoinError } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import type { Connection } from '../../../src/log/redis/client.ts'
import { createLink } from '../../../src/log/redis/link.ts'

type Answer = (args: readonly string[]) => Promise<unknown>

/** A link to a server that greets and answers as told. */
function linkTo({
  handshake = async () => undefined,
  answer,
  leadsTo = () => 'one',
  answerWithinMs = 20_000,
}: {
  handshake?: () => Promise<unknown>
  answer: Answer
  /** Which process a new connection leads to. */
  leadsTo?: () => string
  /** Short only where the test is about an answer that does not come: a busy machine is late, too. */
  answerWithinMs?: number
}) {
  const connections: { isOver: boolean }[] = []
  const link = createLink({
    connector: {
      async connect(): Promise<Connection> {
        const state = { isOver: false }
        connections.push(state)
        let end: () => void = () => undefined
        const over = new Promise<void>((resolve) => {
          end = resolve
        })
        const destroy = () => {
          state.isOver = true
          end()
        }
        return { send: answer, sendTo: (_, args) => answer(args), destroy, over }
      },
    },
    keys: ['log'],
    answerWithinMs,
    handshake: async (connection, accept) => {
      await handshake()
      const process = leadsTo()
      accept(process)
      return { connection, script: { source: '', sha: 'sha' }, process }
    },
  })
  onTestFinished(() => link.close())
  return { link, connections }
}

const evicts = () => new RejoinError('It evicts. Do not.', { code: 'invalid-option' })

test('a server that is rejected while the log opens fails with the reason itself', async () => {
  const { link } = linkTo({ handshake: () => Promise.reject(evicts()), answer: async () => [] })
  await expect(link.step('head')).rejects.toMatchObject({ code: 'invalid-option' })
})

test.each([
  ['the connection is a new one', 'ECONNRESET'],
  ['the log is looked at again', 'NOSCRIPT No such script'],
])('a server that is rejected later makes the log unavailable, with the reason: %s', async (_, failure) => {
  let greetings = 0
  const { link } = linkTo({
    handshake: async () => {
      greetings += 1
      if (greetings > 1) throw evicts()
    },
    answer: () => Promise.reject(new Error(failure)),
    answerWithinMs: 200,
  })
  await expect(link.step('append')).rejects.toMatchObject({
    code: 'log-unavailable',
    retryable: true,
    message: expect.stringContaining('It evicts. Do not.'),
  })
})

test('all connections lead to one server: one that leads elsewhere is tried again, and in the end the others follow it', async () => {
  let newest = 'old master'
  const { link, connections } = linkTo({ answer: async () => ['done'], leadsTo: () => newest })
  await link.step('head')
  newest = 'new master'
  expect(await link.open()).toMatchObject({ process: 'new master' })
  expect(connections.map(({ isOver }) => isOver)).toEqual([true, true, true, false])
  await link.step('head')
  expect(connections).toHaveLength(5)
  expect(connections.at(-1)?.isOver).toBe(false)
})

test('a connection that leads elsewhere once, as while names follow a failover, ends no other', async () => {
  const led = ['master', 'elsewhere', 'master']
  const { link, connections } = linkTo({ answer: async () => ['done'], leadsTo: () => led.shift() as string })
  await link.step('head')
  expect(await link.open()).toMatchObject({ process: 'master' })
  expect(connections.map(({ isOver }) => isOver)).toEqual([false, true, false])
})

test('a command behind a step goes to the same server, and one that is rejected is no failure of the step', async () => {
  const answers: Record<string, () => unknown> = {
    EVALSHA: () => ['done'],
    CONFIG: () => ['appendonly', 'yes'],
    SECRET: () => Promise.reject(new Error('NOPERM no')),
  }
  const { link } = linkTo({ answer: async ([command = '']) => answers[command]?.() })
  expect(await link.stepThen(['CONFIG'], 'append')).toEqual([['done'], ['appendonly', 'yes']])
  expect(await link.stepThen(['SECRET'], 'append')).toEqual([['done'], undefined])
})

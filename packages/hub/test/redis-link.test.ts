import { RejoinError } from '@rejoin/protocol'
import { expect, onTestFinished, test } from 'vitest'
import type { Connection } from '../src/log/redis/client.ts'
import { createLink } from '../src/log/redis/link.ts'

type Answer = (args: readonly string[]) => Promise<unknown>

/** A link to a server that greets and answers as told. */
function linkTo({ greet = async () => undefined, answer }: { greet?: () => Promise<unknown>; answer: Answer }) {
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
        return { send: answer, destroy, over }
      },
    },
    logKey: 'log',
    answerWithinMs: 200,
    greet: async (connection) => {
      await greet()
      return { connection, script: { source: '', sha: 'sha' } }
    },
    repairStep: 'repair',
  })
  onTestFinished(() => link.close())
  return { link, connections }
}

const evicts = () => new RejoinError('It evicts. Do not.', { code: 'invalid-option' })

test('a server that is refused is refused as it is when the log is opened', async () => {
  const { link } = linkTo({ greet: () => Promise.reject(evicts()), answer: async () => [] })
  await expect(link.step('head')).rejects.toMatchObject({ code: 'invalid-option' })
})

test.each([
  ['the connection is a new one', 'ECONNRESET'],
  ['the log is looked at again', 'NOSCRIPT No such script'],
])('a server that is refused later is one that cannot be used now, with the reason: %s', async (_, failure) => {
  let greetings = 0
  const { link } = linkTo({
    greet: async () => {
      greetings += 1
      if (greetings > 1) throw evicts()
    },
    answer: () => Promise.reject(new Error(failure)),
  })
  await expect(link.step('append')).rejects.toMatchObject({
    code: 'log-unavailable',
    retryable: true,
    message: expect.stringContaining('It evicts. Do not.'),
  })
})

test.each<[string, () => Promise<unknown>]>([
  ['is refused', () => Promise.reject(new Error('OOM command not allowed'))],
  ['is not answered', () => new Promise(() => undefined)],
])('a repair that %s is a log that cannot be used now', async (_, repair) => {
  const { link } = linkTo({ answer: async ([, , , , step]) => (step === 'repair' ? repair() : ['!damaged']) })
  await expect(link.step('append')).rejects.toMatchObject({ code: 'log-unavailable', retryable: true })
})

test('a repair that is done lets the step through', async () => {
  let isWhole = false
  const { link } = linkTo({
    answer: async ([, , , , step]) => {
      if (step === 'repair') isWhole = true
      return isWhole ? ['done'] : ['!damaged']
    },
  })
  expect(await link.step('append')).toEqual(['done'])
})

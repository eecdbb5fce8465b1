import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { type ConnectOptions, connect, RejoinError } from '../src/index.ts'

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue()
})
afterEach(() => {
  vi.restoreAllMocks()
})

const wrong: [options: object, message: RegExp][] = [
  [{ identity: 7 }, /^identity is 7. Give the id of the user, as text/],
  [{ transports: 'fetch' }, /^transports is 'fetch'. Give a list of 'fetch', 'long-poll', 'event-source'/],
  [{ transports: [] }, /^transports is \[\]. Give a list of/],
  [{ transports: ['fetch', 'websocket'] }, /^transports is \['fetch', 'websocket'\]. Give a list of/],
  [{ backoff: 'exponential' }, /^backoff is 'exponential'. Give 'full', or a function/],
  [{ parse: 'yaml' }, /^parse is 'yaml'. Give 'json', 'text'\./],
  [{ persist: true }, /^persist is true. Give 'session', or a store/],
  [{ persist: { load: () => null } }, /^persist is of the type object. Give 'session', or a store/],
  [{ credentials: true }, /^credentials is true. Give 'omit', 'same-origin', 'include'/],
  [{ pauseWhenHidden: 'yes' }, /^pauseWhenHidden is 'yes'. Give true, false/],
  [{ shareAcrossTabs: '' }, /^shareAcrossTabs is ''. Give the id of the user, or true/],
  [{ fetch: 'node-fetch' }, /^fetch is 'node-fetch'. Give a function/],
  [{ reports: 1 }, /^reports is 1. Give a URL, or a function/],
  [{ schemas: 'zod' }, /^schemas is 'zod'. Give an object/],
  [{ headers: 'X-A: 1' }, /^headers is 'X-A: 1'. Give headers or a function/],
  [{ token: 5 }, /^token is 5. Give a string or a function/],
  [{ onMessage: () => undefined }, /^onMessage is no option. Give identity, from, persist,/],
  [{ toString: 1 }, /^toString is no option/],
]

test.each(wrong)('in development, %o is reported with what to give', async (options, message) => {
  const stream = open(options)
  onTestFinished(stream.close)
  const reported = () => vi.mocked(console.error).mock.calls.map(([error]) => error as RejoinError)
  // Some of them fail later, too.
  await vi.waitFor(() =>
    expect(reported().map((error) => error.message)).toContainEqual(expect.stringMatching(message)),
  )
  const error = reported().find((it) => message.test(it.message))
  expect(error).toBeInstanceOf(RejoinError)
  expect(error).toMatchObject({ code: 'invalid-option', retryable: false })
})

const rejected: [options: ConnectOptions, message: RegExp][] = [
  [{ retryMs: -1 }, /^retryMs is -1/],
  [{ maxRetryMs: Number.NaN }, /^maxRetryMs is NaN/],
  [{ maxRetries: 'many' as never }, /^maxRetries is many/],
  [{ keep: -1 }, /^keep is -1/],
  [{ from: '' }, /^from is/],
]

test.each(rejected)('%o is rejected at once', (options, message) => {
  expect(() => connect('http://hub/events', options)).toThrow(
    expect.objectContaining({ code: 'invalid-option', message: expect.stringMatching(message) }),
  )
})

test('every option that is documented is taken without a word', async () => {
  const good: Required<ConnectOptions> = {
    ...{
      identity: 'ada',
      from: null,
      persist: { load: () => null, save: () => undefined },
      parse: 'text',
      schemas: {},
      keep: 0,
    },
    ...{ token: null, headers: [], credentials: 'include', fetch: () => new Promise(() => undefined) },
    ...{ retryMs: 0, maxRetryMs: 0, maxRetries: 0, backoff: () => 0, transports: ['long-poll', 'event-source'] },
    ...{ pauseWhenHidden: false, shareAcrossTabs: 'ada', reports: () => undefined },
    signal: new AbortController().signal,
    clock: { now: Date.now, random: Math.random, setTimeout: () => 0, clearTimeout: () => undefined },
  }
  const { checkOptions } = await import('../src/option-check.ts')
  checkOptions(good)
  checkOptions(Object.fromEntries(Object.keys(good).map((name) => [name, undefined])))
  expect(console.error).not.toHaveBeenCalled()
})

test('a transport that does not exist is `fetch`, so that a page in production is not left without events', async () => {
  vi.stubEnv('NODE_ENV', 'production')
  const answer = () => new Response('data: 1\n\n', { headers: { 'content-type': 'text/event-stream' } })
  const stream = connect('http://hub/events', { fetch: async () => answer(), transports: ['websocket' as never] })
  for await (const { data } of stream) {
    expect(data).toBe(1)
    stream.close()
  }
  vi.unstubAllEnvs()
})

function open(options: object) {
  return connect('http://hub/events', { fetch: () => new Promise<never>(() => undefined), ...options })
}

import { expect, test, vi } from 'vitest'
import { pressButton, statusOf } from '../../src/bindings/status.ts'
import type { ConnectionView } from '../../src/bindings/stream-store.ts'
import type { CloseReason } from '../../src/stream-state.ts'

const connection: ConnectionView = {
  state: 'connected',
  attempt: 0,
  nextRetryAt: null,
  retryInSeconds: null,
  stale: false,
  opened: true,
  closeReason: null,
  closeMessage: null,
  transport: 'fetch',
  reconnect: () => undefined,
}
const waiting = { state: 'backoff', stale: true, attempt: 1, nextRetryAt: 4000, retryInSeconds: 4 } as const
const shown = (view: Partial<ConnectionView>) => {
  const status = statusOf({ ...connection, ...view })
  return status && [status.text, status.button]
}

test.each<[CloseReason, string, string | undefined]>([
  ['http-403', 'No access', undefined],
  ['http-404', 'Not found', undefined],
  ['http-410', 'No longer available', undefined],
  ['http-418', 'Rejected by the server', undefined],
  ['wrong-content-type', 'Unexpected answer from the server', 'Try again'],
  ['too-large', 'An event is too large', undefined],
  ['unauthorized', 'Signed out', 'Sign in'],
  ['finished', 'Ended', undefined],
  ['too-many-retries', 'Connection lost', 'Try again'],
  ['no-transport', 'Connection lost', 'Try again'],
])('a stream closed by %s is shown as "%s"', (closeReason, text, button) => {
  expect(shown({ state: 'closed', stale: true, closeReason })).toEqual([text, button])
})

test('a stream that its owner has closed, and one without a source, show nothing', () => {
  expect(shown({ state: 'closed', stale: true, closeReason: 'closed' })).toBeNull()
  expect(shown({ state: 'closed', stale: true, opened: false })).toBeNull()
})

test('a stream that was never reached connects, and does not reconnect', () => {
  const never = { opened: false, attempt: 1, stale: true }
  expect(shown({ state: 'connecting', opened: false })).toEqual(['Connecting…', undefined])
  expect(shown({ ...never, ...waiting })).toEqual(['Cannot connect. Next attempt in 4 s…', 'Retry now'])
  expect(shown({ ...never, state: 'connecting' })).toEqual(['Connecting…', 'Retry now'])
  expect(shown({ ...never, state: 'closed', closeReason: 'too-many-retries' })).toEqual([
    'Cannot connect.',
    'Try again',
  ])
  expect(shown(waiting)).toEqual(['Reconnecting in 4 s…', 'Retry now'])
  expect(shown({ state: 'connecting', attempt: 1, stale: true })).toEqual(['Reconnecting…', 'Retry now'])
})

test.each<[CloseReason, string, string]>([
  ['maintenance', 'Under maintenance.', 'Retry now'],
  ['overloaded', 'The server is busy.', 'Retry now'],
  ['no-credentials', 'Cannot sign in.', 'Sign in'],
])(
  'a stream that waits because of %s says so, and a screen reader does not read the countdown',
  (closeReason, words, button) => {
    expect(statusOf({ ...connection, ...waiting, closeReason })).toMatchObject({
      text: `${words} Next attempt in 4 s…`,
      spoken: words,
      button,
    })
  },
)

test('a sign-in that fails is reported, and the stream does not connect without it', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const reconnect = vi.fn()
  const rejected = { ...connection, state: 'closed', closeReason: 'unauthorized', reconnect } as const
  await pressButton(rejected, () => Promise.reject(new Error('cancelled')))
  await pressButton(rejected, () => {
    throw new Error('no window')
  })
  expect(error.mock.calls.map(([it]) => (it as Error).message)).toEqual(['cancelled', 'no window'])
  expect(reconnect).not.toHaveBeenCalled()
  await pressButton(rejected, async () => undefined)
  expect(reconnect).toHaveBeenCalledOnce()
})

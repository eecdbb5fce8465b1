import { createHub, type HubOptions, RejoinError } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { redisLog } from '@rejoin/hub/redis'
import { describe, expect, onTestFinished, test } from 'vitest'

describe('a hub that was given something it cannot use says what to give', () => {
  const log = memoryLog()
  test.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /needs a log.*memoryLog\(\)/],
    ['no log', {}, /needs a log/],
    ['a log that was not called', { log: memoryLog }, /needs a log/],
    ['a name that does not exist', { log, heartBeatMs: 1000 }, /^heartBeatMs is no option.*heartbeatMs/],
    ['a limit that does not exist', { log, limits: { maxClients: 5 } }, /^limits.maxClients is no.*maxConnections/],
    ['one pattern where a list belongs', { log, retain: 'prices/*' }, /^retain is "prices\/\*".*\['prices/],
    ['another one', { log, fromStart: 'chats/*' }, /^fromStart is .*list/],
    ['a word that means nothing', { log, whenDown: 'wait' }, /^whenDown is "wait".*'reject' or 'local'/],
    ['a number that is none', { log, heartbeatMs: Number.NaN }, /^heartbeatMs is NaN/],
  ])('%s', async (_, options, message) => {
    const error = await createHub(options as HubOptions).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RejoinError)
    expect(error).toMatchObject({ code: 'invalid-option', retryable: false, message: expect.stringMatching(message) })
  })

  test.each([undefined, null, 5, {}, '127.0.0.1:6379', 'http://127.0.0.1', ''])('%j as a Redis', (client) => {
    expect(() => redisLog(client as never)).toThrow(
      expect.objectContaining({
        name: 'RejoinError',
        code: 'invalid-option',
        message: expect.stringContaining('redis://'),
      }),
    )
  })
})

test('an option that is undefined counts as left out', async () => {
  const nothing = undefined
  const window = { maxEvents: nothing, maxAgeMs: nothing, maxBytes: nothing }
  const idempotency = { maxAgeMs: nothing, maxKeys: nothing, maxRecentKeys: nothing }
  const log = memoryLog({ window, windows: { 'prices/*': window }, idempotency, codec: nothing, maxBytes: nothing })
  const limits = { maxConnections: nothing, maxPerIp: nothing, maxStreamBytes: nothing }
  const hub = await createHub({
    log,
    limits,
    heartbeatMs: nothing,
    retryMs: nothing,
    retain: nothing,
    snapshot: nothing,
  })
  const plain = await createHub({ log: memoryLog() })
  for (const each of [hub, plain]) onTestFinished(() => each.close())
  expect(hub.log.window).toEqual(plain.log.window)
  const message = { key: nothing, live: nothing, forget: nothing }
  await hub.publish('prices/fx', { data: 1, ...message }, { idempotencyKey: nothing, subject: nothing })
  expect(await hub.admin.window('prices/fx')).toMatchObject({ events: 1 })
})

test('data that JSON does not have is rejected with what to publish instead', async () => {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const circular: { self?: unknown } = {}
  circular.self = circular
  for (const data of [12n, { sum: 12n }, circular]) {
    await expect(hub.publish('a', { data })).rejects.toMatchObject({
      name: 'RejoinError',
      code: 'invalid-data',
      message: expect.stringMatching(/BigInt as a string/),
    })
  }
  await expect(hub.publish('a', {} as never)).rejects.toMatchObject({ code: 'invalid-data' })
})

import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment, logContract } from '@rejoin/hub/testing'
import { origin, snowflake } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'

describe('memory log', () => {
  logContract({
    test,
    source: ({ location: _, ...options }) => memoryLog(options),
    differs: [
      {
        reason: 'history ends with the process',
        tests: [
          'events, ids and order survive a close and an open',
          'the formats outlive a restart, whatever codec of theirs the log is opened with',
          'a text stands after a close and an open',
        ],
      },
      {
        reason: 'it is called, not sent a command: nothing stands between that could send it twice',
        tests: ['a token it has seen is answered with the positions of then, and appends nothing'],
      },
    ],
  })

  test('a codec that needs a lasting log is rejected with advice', () => {
    expect(() => memoryLog({ codec: snowflake() })).toThrow(/survives restarts/)
  })

  test('a window that holds nothing is rejected with advice', async () => {
    await expect(memoryLog({ window: { maxEvents: 0 } }).open(createVirtualEnvironment())).rejects.toThrow(/1 or more/)
  })

  test('a channel idle for long is forgotten, and a reader older than that is told of a gap', async () => {
    const environment = createVirtualEnvironment()
    const log = await memoryLog({ window: { maxAgeMs: 1000 }, forgetAfterMs: 60_000 }).open(environment)
    const start = await log.head()
    const { stamps } = await log.append([{ channel: 'a', type: 'message', data: '1' }], { token: '1' })
    const event = stamps[0]
    await environment.advance(120_000)
    expect((await log.windows(['a']))[0]?.trimmedThrough).toEqual(event?.position)
    expect((await log.read(['a'], start, await log.head(), { events: 10, bytes: 1e6 })).gap?.channels).toEqual(['a'])
    expect(
      (await log.read(['a'], event?.position ?? origin, await log.head(), { events: 10, bytes: 1e6 })).gap,
    ).toBeUndefined()
    await log.append([{ channel: 'a', type: 'message', data: '2' }], { token: '2' })
    expect((await log.read(['a'], start, await log.head(), { events: 10, bytes: 1e6 })).gap?.channels).toEqual(['a'])
    await log.close()
  })

  test('a channel that was forgotten and then ended is still a gap to a reader from before', async () => {
    const environment = createVirtualEnvironment()
    const log = await memoryLog({ window: { maxAgeMs: 1000 }, forgetAfterMs: 60_000 }).open(environment)
    const start = await log.head()
    await log.append([{ channel: 'a', type: 'message', data: '1' }], { token: '1' })
    await environment.advance(120_000)
    await log.end('a')
    expect((await log.read(['a'], start, await log.head(), { events: 10, bytes: 1e6 })).gap?.channels).toEqual(['a'])
    await log.close()
  })
})

import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'
import { publish } from '../support/publishing.ts'
import { openHub } from '../support/recorder.ts'

function folderOfTest(): string {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  return folder
}

describe('an operator', () => {
  test('who closes a hub twice waits twice for the same end', async () => {
    let letClose: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      letClose = resolve
    })
    const source = memoryLog()
    const hub = await createHub({
      log: {
        name: 'slow to close',
        async open(...environment) {
          const log = await source.open(...environment)
          const close = log.close.bind(log)
          log.close = async () => {
            await gate
            await close()
          }
          return log
        },
      },
    })
    const ends: number[] = []
    const first = hub.close().then(() => void ends.push(1))
    const second = hub.close().then(() => void ends.push(2))
    await new Promise(setImmediate)
    expect(ends).toEqual([])
    letClose()
    await Promise.all([first, second])
    expect(ends).toEqual([1, 2])
  })

  test('sees who is connected, and how they fare', async () => {
    const { hub, environment, connect } = await openHub()
    const reader = { ip: '10.0.0.1', userAgent: 'curl', subject: 'ada' }
    connect('a', { reader, fullAfter: 10 })
    connect(['b', 'c/*'])
    await environment.settle()
    expect([...hub.admin.connections()]).toEqual([
      {
        ...reader,
        connection: expect.any(String),
        channels: ['a'],
        mode: 'replaying',
        full: true,
        pending: expect.any(Number),
        since: environment.now(),
      },
      expect.objectContaining({ channels: ['b', 'c/*'], mode: 'live', full: false, subject: null }),
    ])
  })

  test('ends one connection and no other', async () => {
    const { hub, environment, connect } = await openHub()
    const [one, other] = [connect('a'), connect('a')]
    await environment.settle()
    expect(hub.admin.disconnectHere(one.session.connection)).toBe(true)
    expect(hub.admin.disconnectHere(one.session.connection)).toBe(false)
    expect([one.ended, other.ended]).toEqual([true, false])
    expect(one.events.at(-1)).toMatchObject({ type: 'close', data: '{"reason":"admin"}' })
  })

  test('lists channels with their windows, page by page', async () => {
    const { hub } = await openHub()
    await publish(hub, 'b', 1)
    await publish(hub, 'a', 1, 2)
    await hub.end('c')
    const [first, ...rest] = await hub.admin.channels({ limit: 1 })
    expect([first?.channel, first?.events, rest]).toEqual(['a', 2, []])
    expect((await hub.admin.channels({ after: 'a' })).map(({ channel, ended }) => [channel, ended])).toEqual([
      ['b', false],
      ['c', true],
    ])
  })

  test('sees how many events the hub has heard and handed out', async () => {
    const { hub, environment, connect } = await openHub()
    const readers = [connect('a'), connect('a'), connect('b')]
    await environment.settle()
    const [first] = await publish(hub, 'a', 1, 2)
    await environment.settle()
    readers.push(connect('a', { cursor: first as string }))
    await environment.settle()
    expect(hub.admin.totals).toMatchObject({ events: 2, deliveries: 5 })
    expect(hub.admin.totals.bytes).toBe(readers.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0))
  })

  test.each([
    ['memory', () => memoryLog()],
    ['lmdb', () => lmdbLog(folderOfTest())],
  ])('can probe that the %s log takes events, without publishing one', async (_name, log) => {
    const { hub } = await openHub({ log: log() })
    await hub.admin.probe()
    expect(await hub.admin.channels()).toEqual([])
    await hub.close()
    await expect(hub.admin.probe()).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('rights', () => {
  test('that are revoked while a stream is being opened do not open it', async () => {
    const { hub, environment, connect } = await openHub()
    const asOf = hub.port.revocations
    hub.revoke('ada')
    const late = connect('a', { rights: { grant: { subject: 'ada', subscribe: ['*'] }, asOf } })
    const anew = connect('a', { rights: { grant: { subject: 'ada', subscribe: ['*'] }, asOf: hub.port.revocations } })
    await environment.settle()
    expect([late.ended, anew.ended]).toEqual([true, false])
    expect(late.data).toEqual([])
  })

  test('without a subject belong to nobody: no reader replaces another', async () => {
    const { environment, connect } = await openHub()
    const rights = { grant: { subject: null, subscribe: ['*'] } }
    const readers = [1, 2].map((attempt) => connect('a', { rights, client: { id: 'tab', attempt } }))
    await environment.settle()
    expect(readers.map(({ ended }) => ended)).toEqual([false, false])
  })

  test('that expire are announced in `hello` (§4.4)', async () => {
    const { environment, connect } = await openHub()
    const grant = { subject: 'ada', subscribe: ['*'], expiresAt: environment.now() + 90_000 }
    const [reader, other] = [connect('a', { rights: { grant } }), connect('a')]
    await environment.settle()
    expect(JSON.parse(reader.events[0]?.data ?? '').expiresInMs).toBe(90_000)
    expect(JSON.parse(other.events[0]?.data ?? '')).not.toHaveProperty('expiresInMs')
  })
})

import { createHub, type LogSource, type Revocation } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import type { Log, OrdersCall } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { RejoinError } from '@rejoin/protocol'
import { describe, expect, test } from 'vitest'

describe('rights that are revoked on one hub', () => {
  test('are gone on every hub of the log: streams end there, and its program is told (§7)', async () => {
    const { environment, open } = stage()
    const [one, other] = [await open(), await open()]
    const ended = other.read('ada')
    const others = other.read('bob')
    const reach = one.hub.revoke('ada', { jti: 't-1', until: environment.now() + 60_000 })
    await environment.advance(2000)
    expect(await reach).toEqual({ nodes: 2, confirmed: 2 })
    expect(other.told).toMatchObject([{ subject: 'ada', jti: 't-1' }])
    expect(one.told).toMatchObject([{ subject: 'ada', jti: 't-1' }])
    expect([ended.reason, others.reason]).toEqual(['token-expired', undefined])
  })

  test('are known to a hub that starts later, before it serves anybody', async () => {
    const { environment, open } = stage()
    const one = await open()
    const reach = one.hub.revoke('ada')
    await environment.advance(1000)
    await reach
    const late = await open()
    expect(late.told).toMatchObject([{ subject: 'ada' }])
  })

  test('end no stream that the subject opens with new rights, however often the orders are read again', async () => {
    const { environment, open } = stage()
    const [one, other] = [await open(), await open()]
    const reach = one.hub.revoke('ada')
    await environment.advance(2000)
    await reach
    const back = other.read('ada')
    await environment.advance(200_000)
    expect(back.reason).toBeUndefined()
    expect(other.told).toHaveLength(1)
  })

  test('are told to all when the log is back, and the answer says that not all have confirmed', async () => {
    const { environment, log, open } = stage()
    const [one, other] = [await open(), await open()]
    log.isAway = true
    expect(await one.hub.revoke('ada')).toEqual({ nodes: 2, confirmed: 1 })
    expect(other.told).toEqual([])
    log.isAway = false
    await environment.advance(3000)
    expect(other.told).toMatchObject([{ subject: 'ada' }])
  })

  test('are not counted as confirmed by a hub that does not answer', async () => {
    const { environment, open } = stage()
    const [one, other] = [await open(), await open()]
    await other.hub.close()
    const reach = one.hub.revoke('ada')
    await environment.advance(4000)
    expect(await reach).toEqual({ nodes: 2, confirmed: 1 })
    const later = one.hub.revoke('bob')
    await environment.advance(8000)
    expect(await later).toEqual({ nodes: 1, confirmed: 1 })
  })
})

test('a connection is ended on whichever hub it is, and no other connection is', async () => {
  const { environment, open } = stage()
  const [one, other] = [await open(), await open()]
  const [meant, not] = [other.read('ada'), other.read('ada')]
  const [connection = ''] = [...other.hub.admin.connections()].map((each) => each.connection)
  const outcome = one.hub.admin.disconnect({ connection })
  await environment.advance(2000)
  expect(await outcome).toEqual({ disconnected: 0, nodes: 2, confirmed: 2 })
  expect([meant.reason, not.reason]).toEqual(['admin', undefined])
})

/** Hubs with memory logs of their own, that share nothing but their orders. */
function stage() {
  const environment = createVirtualEnvironment({ seed: 1 })
  const log = { isAway: false, posted: [] as { id: string; order: string }[], heard: new Map<number, Heard>() }
  let hubs = 0

  function source(): LogSource {
    const memory = memoryLog()
    hubs += 1
    const name = hubs
    return {
      name: 'shared',
      open: async (given) =>
        withOrders(await memory.open(given), async ({ after, forMs, order, reached = '' }) => {
          if (log.isAway) throw new RejoinError('away', { code: 'log-unavailable' })
          const id = String(log.posted.length + 1).padStart(5, '0')
          if (order !== undefined) log.posted.push({ id, order })
          log.heard.set(name, { after, until: environment.now() + forMs })
          const here = [...log.heard.values()].filter(({ until }) => until >= environment.now())
          return {
            ...(order === undefined ? {} : { posted: id }),
            orders: log.posted.filter((each) => each.id > after),
            nodes: here.length,
            confirmed: here.filter((each) => each.after >= reached).length,
          }
        }),
    }
  }

  return {
    environment,
    log,
    async open() {
      const told: Revocation[] = []
      const hub = await createHub({ log: source(), environment, onRevoke: (revocation) => told.push(revocation) })
      return {
        hub,
        told,
        /** A stream of a subject, with the reason for its end. */
        read(subject: string): { reason: string | undefined } {
          const stream: { reason: string | undefined } = { reason: undefined }
          const sink = { write: () => true, pending: 0, end: () => undefined, destroy: () => undefined }
          const request = {
            ...{ subscription: createSubscription(['a']), start: { from: 'now' as const } },
            ...{ reader: { ip: null, userAgent: null, subject }, rights: { grant: { subject, subscribe: ['*'] } } },
          }
          const session = hub.port.subscribe({ kind: 'admitted', request }, sink)
          hub.on('close', ({ connection, reason }) => {
            if (connection === session.connection) stream.reason = reason
          })
          return stream
        },
      }
    },
  }
}

interface Heard {
  readonly after: string
  readonly until: number
}

function withOrders(log: Log, orders: (call: OrdersCall) => ReturnType<NonNullable<Log['orders']>>): Log {
  return Object.assign(log, { orders })
}

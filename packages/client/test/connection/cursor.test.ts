import { describe, expect, test } from 'vitest'
import { machine } from '../support/machine.ts'

describe('the cursor', () => {
  test('is there before the first event, from hello (§4.4)', () => {
    const { connected, greet, is } = machine()
    connected()
    greet({ id: 'start' })
    expect(is().cursor).toBe('start')
  })

  test('follows the events and goes along on the next connection', () => {
    const { connected, greet, tell, at, is, opens } = machine()
    connected()
    greet({ id: 'start' })
    tell({ type: 'event', id: '1' })
    tell({ type: 'id', id: '2' })
    tell({ type: 'ended' })
    at(is().nextRetryAt!)
    expect(opens.at(-1)).toMatchObject({ cursor: '2' })
    expect(opens.at(-1)?.inQuery).toBeFalsy()
  })

  test('is not moved by hello when the hub saw none: the header was stripped, and the cursor goes into the URL (§4.4)', () => {
    const { connected, greet, is, opens, effects } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'theirs', requested: null })
    expect(opens.at(-1)).toMatchObject({ generation: 2, cursor: 'mine', inQuery: true })
    expect(effects.filter((effect) => effect === 'abort')).toHaveLength(1)
    connected()
    greet({ id: 'mine', requested: 'mine' })
    expect(is()).toMatchObject({ cursor: 'mine', astray: false })
  })

  test("is not moved by another reader's stream, such as a cache may hand out", () => {
    const { connected, greet, opens } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'yours', requested: 'yours' })
    expect(opens.at(-1)).toMatchObject({ cursor: 'mine', inQuery: true })
  })

  test('that the hub does not see in the URL either is reported to the user as a gap', () => {
    const { connected, greet, input, is } = machine({ cursor: 'mine' })
    connected()
    greet({ id: 'theirs', requested: null })
    connected()
    greet({ id: 'theirs', requested: null })
    expect(is()).toMatchObject({ state: 'connected', cursor: 'mine', astray: true })
    input({ type: 'connect' })
    connected()
    greet({ id: 'mine', requested: 'mine' })
    expect(is().astray).toBe(false)
  })

  test('is not moved by a hello that does not say which cursor was requested', () => {
    const { connected, tell, is } = machine({ cursor: 'mine' })
    connected()
    tell({ type: 'hello', id: 'theirs', hello: {} })
    expect(is()).toMatchObject({ state: 'connected', cursor: 'mine' })
  })

  test('is given up when the server clears its id', () => {
    const { connected, tell, is } = machine({ cursor: 'mine' })
    connected()
    tell({ type: 'id', id: '' })
    expect(is().cursor).toBeNull()
  })

  test('counts the event whose handler closed the stream', () => {
    const { connected, tell, input, is } = machine()
    connected()
    tell({ type: 'event', id: '1' })
    input({ type: 'close' })
    tell({ type: 'event', id: '2' })
    expect(is()).toMatchObject({ state: 'closed', cursor: '2' })
  })
})

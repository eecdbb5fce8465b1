import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { message } from './support/scripted-server.ts'
import { deferred, moved, server, start, useStage } from './support/stage.ts'

useStage()

test('a loop gets every event, and ends when the stream is closed', async () => {
  const { stream } = start()
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) {
      seen.push(id)
      if (id === 'e3') stream.close()
    }
  })()
  const visit = await server.stream()
  visit.write([1, 2, 3, 4].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await looped
  expect(seen).toEqual(['e1', 'e2', 'e3'])
})

test('the stream is read at the pace of the loop, and an event counts once the loop is done with it', async () => {
  const { stream, events } = start()
  const places: unknown[] = []
  const visit = server.stream()
  const looped = (async () => {
    for await (const { id } of stream) {
      // More turns than the events would take that are already here.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      places.push([id, stream.cursor, events.all.length])
      if (id === 'e3') break
    }
  })()
  ;(await visit).write([1, 2, 3].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  await looped
  expect(places).toEqual([
    ['e1', null, 1],
    ['e2', 'e1', 2],
    ['e3', 'e2', 3],
  ])
})

test('a loop that is left lets the stream go on without it', async () => {
  const { stream, events } = start()
  const looped = (async () => {
    for await (const _ of stream) break
  })()
  const visit = await server.stream()
  visit.send(...message('e1'))
  await looped
  visit.send(...message('e2'))
  await events.until(2)
  expect(stream.cursor).toBe('e2')
})

test.each([
  { way: 'break', breaks: true },
  { way: 'break, after the stream was closed', breaks: true, closes: true },
  { way: 'the end of the stream', closes: true },
  { way: 'its signal', aborts: true },
])('the cursor behind a loop that was left by $way is the last event that the loop had', async (leaving) => {
  const { breaks = false, closes = false, aborts = false } = leaving
  const { stream } = start()
  const aborter = new AbortController()
  const looped = (async () => {
    for await (const { id } of stream.iterate({ signal: aborter.signal })) {
      if (id !== 'e2') continue
      if (closes) stream.close()
      if (aborts) aborter.abort()
      if (breaks) break
    }
    return stream.cursor
  })()
  const visit = await server.stream()
  visit.write([1, 2, 3, 4].map((n) => `${message(`e${n}`).join('\n')}\n\n`).join(''))
  expect(await looped).toBe('e2')
})

test('an event in the hands of a loop is not delivered again by the next connection', async () => {
  const { stream, events } = start()
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) {
      if (id === 'e1') stream.reconnect()
      seen.push(id)
      if (id === 'e2') break
    }
  })()
  ;(await server.stream()).send(...message('e1'))
  const second = await server.stream()
  for (const id of ['e1', 'e2']) second.send(...message(id))
  await looped
  expect(seen).toEqual(['e1', 'e2'])
  expect(events.data()).toEqual(['e1', 'e2'])
})

test('a loop ends when the stream is closed while an event is on its way to it', async () => {
  const { stream } = start()
  stream.on('message', () => queueMicrotask(() => stream.close()))
  const seen: string[] = []
  const looped = (async () => {
    for await (const { id } of stream) seen.push(id)
  })()
  ;(await server.stream()).send(...message('e1'))
  await looped
  expect(seen).toEqual(['e1'])
  await moved(stream, 'e1')
})

test('a loop over a stream that is closed ends at once', async () => {
  const { stream } = start()
  stream.close()
  for await (const event of stream) throw new Error(`got ${event.id}`)
})

test('leaving a loop ends a next() that waits, and what follows it', async () => {
  const { stream, events } = start()
  const iterator = stream[Symbol.asyncIterator]()
  const waiting = iterator.next()
  expect(await iterator.return()).toEqual({ done: true, value: undefined })
  expect(await waiting).toEqual({ done: true, value: undefined })
  expect(await iterator.next()).toEqual({ done: true, value: undefined })
  // And the stream goes on without it.
  const visit = await server.stream()
  for (const id of ['e1', 'e2']) visit.send(...message(id))
  await events.until(2)
  await moved(stream, 'e2')
})

test('an iterator that is left before it was asked for anything holds nothing up', async () => {
  const { stream, events } = start()
  await stream[Symbol.asyncIterator]().return()
  const visit = await server.stream()
  for (const id of ['e1', 'e2']) visit.send(...message(id))
  await events.until(2)
})

test('a signal ends a loop that waits, by leaving it', async () => {
  const { stream, events } = start()
  const controller = new AbortController()
  const seen: string[] = []
  const iterator = stream[Symbol.asyncIterator]()
  controller.signal.addEventListener('abort', () => iterator.return())
  const looped = (async () => {
    for await (const { id } of iterator) seen.push(id)
  })()
  const visit = await server.stream()
  visit.send(...message('e1'))
  await expect.poll(() => seen).toEqual(['e1'])
  controller.abort()
  await looped
  visit.send(...message('e2'))
  await events.until(2)
  expect(seen).toEqual(['e1'])
})

test('an event between two loops counts as seen, and an iterator that is kept gets all that follow it', async () => {
  const { stream } = start()
  const visit = await server.stream()
  const first = stream[Symbol.asyncIterator]()
  visit.send(...message('e1'))
  for await (const { id } of first) {
    expect(id).toBe('e1')
    break
  }
  visit.send(...message('e2'))
  await moved(stream, 'e2')
  const kept = stream[Symbol.asyncIterator]()
  for (const id of ['e3', 'e4', 'e5']) visit.send(...message(id))
  const ids: unknown[] = []
  for (let n = 0; n < 3; n++) {
    const { value } = await kept.next()
    ids.push(value?.id)
    // More turns than the next event would take, if anybody let it pass.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(ids).toEqual(['e3', 'e4', 'e5'])
})

test('an event that arrived for an iterator that is left at once is not handed out', async () => {
  const { stream, events } = start()
  const iterator = stream[Symbol.asyncIterator]()
  ;(await server.stream()).send(...message('e1'))
  await events.until(1)
  expect(await iterator.return()).toEqual({ done: true, value: undefined })
  expect(await iterator.next()).toEqual({ done: true, value: undefined })
  await moved(stream, 'e1')
})

test('an event that no loop had asked for when the stream was closed does not count', async () => {
  const { stream, events } = start()
  stream[Symbol.asyncIterator]()
  ;(await server.stream()).send(...message('e1'))
  await events.until(1)
  stream.close()
  // More turns than it would take to count.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(stream.cursor).toBe(null)
})

describe('a signal', () => {
  test('ends a loop that waits for an event, and the stream goes on without it', async () => {
    const { stream, events } = start()
    const controller = new AbortController()
    const seen: string[] = []
    const looped = (async () => {
      for await (const { id } of stream.iterate({ signal: controller.signal })) seen.push(id)
    })()
    const visit = await server.stream()
    visit.send(...message('e1'))
    await expect.poll(() => seen).toEqual(['e1'])
    controller.abort()
    await looped
    visit.send(...message('e2'))
    await events.until(2)
    await moved(stream, 'e2')
    expect(seen).toEqual(['e1'])
  })

  test('that is aborted before its loop ends it at once, and holds nothing up', async () => {
    const { stream, events } = start()
    for await (const event of stream.iterate({ signal: AbortSignal.abort() })) throw new Error(`got ${event.id}`)
    const visit = await server.stream()
    for (const id of ['e1', 'e2']) visit.send(...message(id))
    await events.until(2)
  })

  test('has an event in the hands of a loop count when the loop is done with it, and ends the loop then', async () => {
    const { stream, events } = start()
    const controller = new AbortController()
    const stored = deferred()
    const seen: string[] = []
    const looped = (async () => {
      for await (const { id } of stream.iterate({ signal: controller.signal })) {
        seen.push(id)
        controller.abort()
        await stored.promise
      }
    })()
    const visit = await server.stream()
    for (const id of ['e1', 'e2']) visit.send(...message(id))
    await expect.poll(() => seen).toEqual(['e1'])
    // More turns than the next event would take, if anybody let it pass.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([stream.cursor, events.all.length]).toEqual([null, 1])
    stored.resolve()
    await looped
    await events.until(2)
    expect(seen).toEqual(['e1'])
  })

  test('lets go of an event that no loop has asked for', async () => {
    const { stream, events } = start()
    const controller = new AbortController()
    stream.iterate({ signal: controller.signal })
    const visit = await server.stream()
    for (const id of ['e1', 'e2']) visit.send(...message(id))
    await events.until(1)
    controller.abort()
    await events.until(2)
  })

  test('that outlives its loops keeps none of them', async () => {
    const { stream } = start()
    const { signal } = new AbortController()
    const left = stream.iterate({ signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await left.return()
    const looped = (async () => {
      for await (const _ of stream.iterate({ signal })) break
    })()
    ;(await server.stream()).send(...message('e1'))
    await looped
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

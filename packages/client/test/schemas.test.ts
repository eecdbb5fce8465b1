import { expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { connect, type Schema } from '../src/index.ts'
import { clock, opened, recorder, server, start, useStage } from './support/stage.ts'

useStage()

/** As a schema library would show it. */
function schema<Output>(read: (value: unknown) => Output | Promise<Output>): Schema<Output> {
  const issues = (error: unknown) => ({ issues: [{ message: (error as Error).message }] })
  return {
    '~standard': {
      version: 1,
      validate(value) {
        try {
          const made = read(value)
          return made instanceof Promise ? made.then((output) => ({ value: output }), issues) : { value: made }
        } catch (error) {
          return issues(error)
        }
      },
    },
  }
}

const date = schema((value) => {
  if (typeof value !== 'number') throw new Error('a number is needed')
  return new Date(value)
})

test('handlers get the output of the schema of their type, typed', async () => {
  const stream = connect(server.url, { clock, schemas: { shipped: date } })
  opened.push(stream)
  stream.on('shipped', ({ data }) => expectTypeOf(data).toEqualTypeOf<Date>())
  const events = recorder(stream)
  const visit = await server.stream()
  visit.send('event: shipped', 'data: 86400000')
  visit.send('event: other', 'data: "unchecked"')
  expect(await events.until(2)).toEqual([new Date(86_400_000), 'unchecked'])
})

test('events of types without a schema are handled too, and typed as far as they are declared', async () => {
  const stream = connect(server.url, { clock, schemas: { shipped: date } })
  opened.push(stream)
  const others: unknown[] = []
  stream.on('other', ({ type, data }) => {
    expectTypeOf(data).toEqualTypeOf<unknown>()
    others.push([type, data])
  })
  stream.on('*', (event) => {
    if (event.type === 'shipped') expectTypeOf(event.data).toEqualTypeOf<Date>()
  })
  const named = connect<{ shipped: Date; paid: number }>(server.url, { clock, schemas: { shipped: date } })
  opened.push(named)
  named.on('paid', ({ data }) => expectTypeOf(data).toEqualTypeOf<number>())
  ;(await server.stream()).send('event: other', 'data: "unchecked"')
  await expect.poll(() => others).toEqual([['other', 'unchecked']])
})

test.each(['constructor', 'toString', '__proto__'])('a type named %s has no schema by accident', async (type) => {
  const { events } = start({ schemas: { shipped: date } })
  ;(await server.stream()).send(`event: ${type}`, 'data: 1')
  expect(await events.until(1)).toEqual([1])
})

test('an event that its schema rejects goes to onInvalid with the issues, and counts as handled', async () => {
  const { stream, events } = start({ schemas: { shipped: date } })
  const invalid: unknown[] = []
  stream.onInvalid((event) => invalid.push(event))
  const visit = await server.stream()
  visit.send('id: e1', 'event: shipped', 'data: "soon"')
  visit.send('id: e2', 'event: shipped', 'data: 1')
  await events.until(1)
  expect(invalid).toEqual([{ id: 'e1', type: 'shipped', data: '"soon"', error: [{ message: 'a number is needed' }] }])
  expect(stream.cursor).toBe('e2')
})

test('without onInvalid, an event that its schema rejects is reported as bad data', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const { events } = start({ schemas: { shipped: date } })
  const visit = await server.stream()
  visit.send('id: e1', 'event: shipped', 'data: "soon"')
  visit.send('id: e2', 'event: shipped', 'data: 1')
  await events.until(1)
  expect(warn).toHaveBeenCalledExactlyOnceWith('Rejoin:', expect.stringMatching(/\bdata\b.*onInvalid/))
})

test('events wait for a schema that is async, and keep their order', async () => {
  const slow = schema(async (value) => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (value === 2) throw new Error('not two')
    return value
  })
  const { stream, events } = start({ schemas: { slow } })
  const invalid: unknown[] = []
  stream.onInvalid(({ data }) => invalid.push(data))
  const visit = await server.stream()
  for (const n of [1, 2, 3]) visit.send(`id: e${n}`, 'event: slow', `data: ${n}`)
  visit.send('id: e4', 'data: 4')
  expect(await events.until(3)).toEqual([1, 3, 4])
  expect(invalid).toEqual(['2'])
  expect(stream.cursor).toBe('e4')
})

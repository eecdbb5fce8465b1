import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventsOf, has, stage } from './support/stage.ts'

test('whatever names and TXT values a network chooses, each is one event that reads back as it was', async () => {
  const { read, announce } = await stage({ maxServices: 100_000, window: { maxEvents: 100_000 } })
  const reader = await read()
  await reader.until(has('hello'))
  const names = new Map<string, string>()
  const breakers = fc.constantFrom(
    '\n',
    '\r\n',
    '\0',
    'data: x',
    'id: 1',
    '\n\nevent: hello',
    '"',
    '\\',
    '<script>',
    '.',
    '\u2028',
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    breakers,
    fc.array(breakers).map((some) => some.join('')),
  )
  await fc.assert(
    fc.asyncProperty(text, text, async (part, value) => {
      const name = `${names.size} ${part}`.toWellFormed()
      names.set(name, value.toWellFormed())
      announce({ name, txt: [`v=${value.toWellFormed()}`] })
    }),
    { numRuns: 500 },
  )
  announce({ name: 'end' })
  await reader.until((each) => eventsOf(each).some(({ data }) => data.name === 'end'))
  const told = eventsOf(reader).slice(0, -1)
  expect(told.map(({ data }) => [data.name, data.txt.v])).toEqual([...names])
  expect(new Set(reader.frames.map(({ type }) => type))).toEqual(new Set(['hello', 'resolved']))
  const late = await read()
  await late.until(has('checkpoint'))
  expect(eventsOf(late).map(({ id }) => id)).toEqual(eventsOf(reader).map(({ id }) => id))
})

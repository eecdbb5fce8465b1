import { expect, test } from 'vitest'
import { createSchemaCheck } from '../src/schema-check.ts'

const anything = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const

test.each(['constructor', 'toString', '__proto__'])(
  'a channel named %s takes any message when nothing is declared for it',
  async (channel) => {
    const check = createSchemaCheck({ news: { message: anything } })
    await expect(check(channel, { type: 'shipped', data: 1 })).resolves.toBeUndefined()
  },
)

test('a channel named like a key of every object is checked by the template that it fits', async () => {
  const check = createSchemaCheck({ ':name': { message: anything } })
  await expect(check('constructor', { data: 1 })).resolves.toBeUndefined()
  await expect(check('constructor', { type: 'shipped', data: 1 })).rejects.toMatchObject({ code: 'invalid-type' })
})

import { expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'

// In a process of its own (vitest.config.ts): for the time of this test every object of it has a key more.
test('a publish is not rejected because of keys that the program gives to every object', async () => {
  const { url } = await serveHub()
  const publish = (body: string) => fetch(url('/publish'), { method: 'POST', body })
  Object.defineProperty(Object.prototype, 'inherited', { value: {}, enumerable: true, configurable: true })
  const answers = [await publish(nested(99)), await publish(`[${nested(98)}]`)]
  Reflect.deleteProperty(Object.prototype, 'inherited')
  expect(answers.map(({ status }) => status)).toEqual([201, 201])
})

/** An envelope with objects in objects. */
function nested(levels: number): string {
  return `{"channel":"a","data":${'{"x":'.repeat(levels)}1${'}'.repeat(levels)}}`
}

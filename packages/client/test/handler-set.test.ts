import { expect, test } from 'vitest'
import { createHandlerSet } from '../src/handler-set.ts'

const always = () => true

test('a handler that another one takes off is not called any more', () => {
  const set = createHandlerSet<string>()
  const called: string[] = []
  set.add(() => {
    called.push('first')
    off()
  })
  const off = set.add(() => called.push('second'))
  void set.call('news', always)
  expect(called).toEqual(['first'])
})

test('a handler that another one adds is called from the next call on', () => {
  const set = createHandlerSet<string>()
  const called: string[] = []
  set.add((news) => {
    set.add((later) => called.push(`${later}, added at ${news}`))
  })
  void set.call('one', always)
  expect(called).toEqual([])
  void set.call('two', always)
  expect(called).toEqual(['two, added at one'])
})

test('a promise of any library is waited for', async () => {
  const set = createHandlerSet<string>()
  const settled: string[] = []
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: that is what such a promise is
    then(resolve: (value: unknown) => void) {
      settled.push('settled')
      resolve(undefined)
    },
  }
  set.add(() => thenable)
  await set.call('news', always)
  expect(settled).toEqual(['settled'])
})

test('a handler that is added twice is called twice, and taken off once at a time', () => {
  const set = createHandlerSet<string>()
  const called: string[] = []
  const handler = (news: string) => called.push(news)
  const off = set.add(handler)
  const offAgain = set.add(handler)
  void set.call('one', always)
  expect(called).toEqual(['one', 'one'])
  off()
  off()
  void set.call('two', always)
  expect(called).toEqual(['one', 'one', 'two'])
  offAgain()
  expect(set.isEmpty()).toBe(true)
})

import { afterEach, expect, test, vi } from 'vitest'
import { requestAddress, resolveAddress } from '../src/address.ts'

afterEach(() => vi.unstubAllGlobals())

test('a relative URL is completed by the page', () => {
  vi.stubGlobal('document', { baseURI: 'https://shop.example/app/' })
  expect(resolveAddress('../events/orders').href).toBe('https://shop.example/events/orders')
})

test('a relative URL is completed by the location of a worker', () => {
  vi.stubGlobal('location', { href: 'https://shop.example/worker.js' })
  expect(resolveAddress('/events/orders').href).toBe('https://shop.example/events/orders')
})

test('a relative URL outside of a page is rejected with advice', () => {
  expect(() => resolveAddress('/events/orders')).toThrow(
    expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining('Give an http(s) URL') }),
  )
})

test.each(['ftp://hub.example/events', 'https://me:secret@hub.example/events'])('%s is rejected', (url) => {
  expect(() => resolveAddress(url)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
})

test('a new cursor replaces the old one in the URL, and the rest of the URL stays as it is (§3.1)', () => {
  const address = resolveAddress('https://hub.example/events?channel=a&lastEventId=old')
  const { href } = requestAddress(address, {}, 'a+b%c')
  expect(href).toBe('https://hub.example/events?channel=a&lastEventId=a%2Bb%25c')
  expect(address.searchParams.get('lastEventId')).toBe('old')
})

test('a query parameter that the page has set in the URL is not overwritten', () => {
  const address = resolveAddress('https://other.example/events?clientId=42')
  const { href } = requestAddress(address, { clientId: 'me', attempt: 3 }, null)
  expect(href).toBe('https://other.example/events?clientId=42&attempt=3')
})

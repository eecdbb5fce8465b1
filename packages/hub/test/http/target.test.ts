import { describe, expect, test } from 'vitest'
import { parseTarget, targetOf } from '../../src/http/target.ts'

describe('the target of a request', () => {
  test.each([
    ['/events/orders/42?x=1', 'events', 'orders/42', '1'],
    ['/events', 'events', '', null],
    ['/events/', 'events', '', null],
    ['/events?x=1', 'events', '', '1'],
    ['/eventsx/a', 'eventsx', 'a', null],
    ['//events/a', '', 'events/a', null],
    ['/events/a%2Fb%20c', 'events', 'a/b c', null],
    ['/events/../admin', 'events', '../admin', null],
    ['http://hub.example/poll/a?x=1', 'poll', 'a', '1'],
    ['HTTPS://hub.example', '', '', null],
    ['*', '', '', null],
    ['', '', '', null],
  ])('%s is taken apart as it came', (url, endpoint, rest, x) => {
    const target = parseTarget(url)
    expect([target.endpoint, target.rest, target.query.get('x')]).toEqual([endpoint, rest, x])
  })

  test('with bytes that are not UTF-8 holds no valid channel', () => {
    expect(parseTarget('/events/%ff').rest).toBe('\ud800')
  })

  test('below a base path has the endpoint behind it, and none outside of it', () => {
    expect(parseTarget('/api/events/a?x=1').below('/api/')).toMatchObject({ endpoint: 'events', path: '/events/a' })
    expect(parseTarget('/apis/events/a').below('/api').endpoint).toBe('')
    expect(parseTarget('/events/a').below('/api').endpoint).toBe('')
  })

  test('is taken apart once, and again when a router has changed the url', () => {
    const request = { url: '/api/events/a' }
    const target = targetOf(request)
    expect(targetOf(request)).toBe(target)
    request.url = '/events/a'
    expect(targetOf(request).endpoint).toBe('events')
  })
})

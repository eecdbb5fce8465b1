import { checkChannel, RejoinError } from '@rejoin/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { browseUrl, channelOf, serviceType, splitInstance } from '../src/service-type.ts'

describe('a service type is understood as people write it', () => {
  test.each([
    'http',
    '_http',
    'http._tcp',
    '_http._tcp',
    '_http._tcp.',
    '_http._tcp.local',
    '_http._tcp.local.',
    '_HTTP._TCP.Local.',
    ' _http._tcp ',
  ])('%j', (text) => {
    expect(serviceType(text)).toBe('_http._tcp.local.')
  })

  test.each([
    ['dns-sd._udp', '_dns-sd._udp.local.'],
    ['_services._dns-sd._udp', '_services._dns-sd._udp.local.'],
    ['_6lowpan._udp', '_6lowpan._udp.local.'],
  ])('%j', (text, type) => {
    expect(serviceType(text)).toBe(type)
  })
})

describe('text that names no service type is rejected with advice', () => {
  test.each([
    '',
    '_',
    '.',
    'http._sctp',
    'sixteen-letters-x',
    '-http',
    'http-',
    'ht--tp',
    '12345',
    'a b',
    'a\nb',
    'http._tcp.example.com',
    '_sub._http._tcp',
    'é',
    '../events',
    '*',
  ])('%j', (text) => {
    expect(() => serviceType(text)).toThrow(
      expect.objectContaining({ code: 'invalid-type', message: expect.stringContaining('_http._tcp') }),
    )
  })
})

test('whatever text is given, it is rejected, or gives one canonical type whose channel is a channel', () => {
  const parts = fc.constantFrom('_', '.', '-', 'http', 'tcp', 'udp', 'local', 'é', '\n', '*', '/')
  const near = fc.array(parts, { maxLength: 8 }).map((some) => some.join(''))
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), near), (text) => {
      try {
        const type = serviceType(text)
        expect(serviceType(type)).toBe(type)
        expect(type).toMatch(/^_[a-z0-9-]{1,15}\._(?:tcp|udp)\.local\.$|^_services\._dns-sd\._udp\.local\.$/)
        expect(checkChannel(channelOf(type))).toBe(channelOf(type))
        const url = new URL(browseUrl([channelOf(type)]) ?? '', 'http://hub')
        expect(serviceType(url.searchParams.get('type') ?? '')).toBe(type)
      } catch (error) {
        if (!(error instanceof RejoinError)) throw error
        expect(error.code).toBe('invalid-type')
      }
    }),
    { numRuns: 2000 },
  )
})

test('a full name is taken apart at its type, whatever stands before it', () => {
  expect(splitInstance('My NAS 2.0._http._tcp.local.')).toEqual({ name: 'My NAS 2.0', type: '_http._tcp.local.' })
  expect(splitInstance('a\nb._ipp._tcp')).toEqual({ name: 'a\nb', type: '_ipp._tcp.local.' })
  for (const bad of ['', 'My NAS', '_http._tcp.local.', `${'x'.repeat(64)}._http._tcp.local.`]) {
    expect(splitInstance(bad)).toBeUndefined()
  }
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void splitInstance(text)))
})

test('the address of the browse is given for a channel of services, and for no other', () => {
  expect(browseUrl(['mdns/_http._tcp'])).toBe('/v1/mdns/browse?type=_http._tcp')
  expect(browseUrl(['orders/42'])).toBeUndefined()
  expect(browseUrl(['mdns/_http._tcp', 'mdns/_ipp._tcp'])).toBeUndefined()
})

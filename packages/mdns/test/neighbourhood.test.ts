import type { NetworkInterfaceInfo } from 'node:os'
import { expect, test } from 'vitest'
import { createNeighbourhood } from '../src/neighbourhood.ts'

test('an answer from a link that has just come up is heard at once, not five seconds later', () => {
  const { links, neighbourhood, pass } = around()
  expect(neighbourhood.isNear('10.0.0.7')).toBe(false)
  links.eth0 = [interfaceOf('10.0.0.1/24')]
  pass(100)
  expect(neighbourhood.isNear('10.0.0.7')).toBe(true)
  expect(neighbourhood.isOwn('10.0.0.1')).toBe(true)
})

test('a flood of forged answers makes us look at the interfaces ten times a second at most', () => {
  const { neighbourhood, pass, looks } = around()
  for (let ms = 0; ms < 1000; ms += 1) {
    expect(neighbourhood.isNear('203.0.113.9')).toBe(false)
    pass(1)
  }
  expect(looks()).toBe(10)
})

test('a link that has gone is no longer near after five seconds', () => {
  const { links, neighbourhood, pass } = around()
  links.eth0 = [interfaceOf('10.0.0.1/24')]
  expect(neighbourhood.isNear('10.0.0.7')).toBe(true)
  delete links.eth0
  pass(4999)
  expect(neighbourhood.isNear('10.0.0.7')).toBe(true)
  pass(1)
  expect(neighbourhood.isNear('10.0.0.7')).toBe(false)
})

test('addresses that a machine gives itself are near without an interface that says so', () => {
  const { neighbourhood } = around()
  expect(neighbourhood.isNear('169.254.3.4')).toBe(true)
})

function around() {
  const links: Record<string, NetworkInterfaceInfo[]> = {}
  let nowMs = 0
  let looked = 0
  const neighbourhood = createNeighbourhood({
    interfaces() {
      looked += 1
      return links
    },
    now: () => nowMs,
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { links, neighbourhood, pass, looks: () => looked }
}

function interfaceOf(cidr: string): NetworkInterfaceInfo {
  const [address = ''] = cidr.split('/')
  return { address, cidr, family: 'IPv4', netmask: '255.255.255.0', mac: '02:00:00:00:00:01', internal: false }
}

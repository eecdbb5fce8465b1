import type { DnsRecord } from '../../src/network.ts'

export interface Announced {
  readonly name?: string
  readonly type?: string
  readonly host?: string
  readonly port?: number
  readonly txt?: readonly (string | Uint8Array)[]
  readonly addresses?: readonly string[]
  /** Of all records, in seconds. */
  readonly ttl?: number
}

/** The records with which a responder announces a service, or with a `ttl` of 0 takes it back. */
export function announcement(announced: Announced = {}): DnsRecord[] {
  const { name = 'My NAS', type = '_http._tcp.local', host = 'nas.local', port = 80, ttl = 120 } = announced
  const { txt = ['path=/'], addresses = ['10.0.0.7'] } = announced
  const fullName = `${name}.${type}`
  const strings = txt.map((each) => Buffer.from(each))
  return [
    { type: 'PTR', name: type, ttl, flush: false, data: fullName },
    { type: 'SRV', name: fullName, ttl, flush: true, data: { target: host, port } },
    { type: 'TXT', name: fullName, ttl, flush: true, data: strings },
    ...addresses.map(
      (data): DnsRecord => ({ type: data.includes(':') ? 'AAAA' : 'A', name: host, ttl, flush: true, data }),
    ),
  ]
}

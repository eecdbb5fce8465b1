import { RejoinError } from '@rejoin/protocol'
import { sameName } from './network.ts'

/** A service type, written as in its records: `_http._tcp.local.`. */
export type ServiceType = string

/** The type whose instances are the service types of the network (RFC 6763, section 9). */
export const allTypes: ServiceType = '_services._dns-sd._udp.local.'

/**
 * Reads a service type as people write it: `http`, `_http`, `_http._tcp`, `_http._tcp.local.`, in upper or lower case.
 * Without a protocol, the type is of TCP. Throws `invalid-type`.
 */
export function serviceType(text: string): ServiceType {
  const bare = sameName(text.trim()).replace(/\.local$/, '')
  if (bare === '_services._dns-sd._udp') return allTypes
  const [, name = '', protocol = 'tcp'] = /^_?([^._]+)(?:\._?(tcp|udp))?$/.exec(bare) ?? []
  if (name.length <= 15 && serviceName.test(name)) return `_${name}._${protocol}.local.`
  throw new RejoinError(
    `${JSON.stringify(text.slice(0, 60))} is no service type. Write it like _http._tcp: a name of 1 to 15 letters, digits ` +
      'and hyphens, then _tcp or _udp.',
    { code: 'invalid-type' },
  )
}

// RFC 6335, section 5.1.
const serviceName = /^(?=.*[a-z])[a-z0-9]+(?:-[a-z0-9]+)*$/

/** The channel that the events of a type are published to: `mdns/_http._tcp`. */
export function channelOf(type: ServiceType): string {
  return `mdns/${type.replace(/\.local\.$/, '')}`
}

/**
 * The URL from which a reader of these channels loads the services that are there now. Use it as the `snapshotUrl` of a
 * hub that you give to `createMdns`. Undefined for other channels, and for more than one.
 */
export function browseUrl(channels: readonly string[]): string | undefined {
  const [channel = '', ...others] = channels
  if (others.length > 0 || !channel.startsWith('mdns/_')) return undefined
  return `/v1/mdns/browse?type=${encodeURIComponent(channel.slice('mdns/'.length))}`
}

/** The type and the instance in a full name, `My NAS._http._tcp.local.`; undefined for any other text. */
export function splitInstance(text: string): { type: ServiceType; name: string } | undefined {
  const [, name = '', type = ''] = /^(.+)\.(_[a-z0-9-]+\._(?:tcp|udp))(?:\.local)?\.?$/is.exec(text) ?? []
  if (name === '' || Buffer.byteLength(name) > 63) return undefined
  try {
    return { name, type: serviceType(type) }
  } catch {
    // Not the name of a service, because it holds no valid type.
    return undefined
  }
}

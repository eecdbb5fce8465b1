import type { ServiceType } from './service-type.ts'
import type { Txt } from './txt.ts'

/** A service that can be connected to. Its texts are those of whoever announced it: show them as text, never as HTML. */
export interface Service {
  readonly type: ServiceType
  /** The instance: `My NAS`. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** The first of `addresses`. */
  readonly ip: string
  /** IPv4 first, then IPv6, addresses of the link alone last. */
  readonly addresses: readonly string[]
  readonly txt: Txt
}

/** A service of which only the name is known. */
export type ServiceName = Pick<Service, 'type' | 'name'>

/**
 * What has become of a service, and the data of an event. `found`: its name is known and nothing else yet. `resolved`: it can be
 * connected to, for the first time or otherwise than before. `removed`: it is gone.
 */
export type Fact =
  | { readonly event: 'found' | 'removed'; readonly service: ServiceName }
  | { readonly event: 'resolved'; readonly service: Service }

/** The order that makes two lists of the same addresses equal. */
export function sortAddresses(addresses: Iterable<string>): string[] {
  return [...addresses].sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1))
}

function rank(address: string): number {
  if (!address.includes(':')) return address.startsWith('169.254.') ? 1 : 0
  return /^fe[89ab]/i.test(address) ? 3 : 2
}

import type { ServiceType } from './service-type.ts'
import type { Txt } from './txt.ts'

/**
 * A service that can be connected to. Its texts come from the machine that announced it: show them as text, never as
 * HTML.
 */
export interface Service {
  readonly type: ServiceType
  /** The name of the instance: `My NAS`. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** The first of `addresses`. */
  readonly ip: string
  /** IPv4 addresses before IPv6 addresses. Within each family, link-local addresses come last. */
  readonly addresses: readonly string[]
  readonly txt: Txt
}

/** A service of which only the name is known. */
export type ServiceName = Pick<Service, 'type' | 'name'>

/**
 * What has happened to a service; published as one event. `found`: only its name is known yet. `resolved`: it can be
 * connected to, for the first time or in another way than before. `removed`: it is gone.
 */
export type Fact =
  | { readonly event: 'found' | 'removed'; readonly service: ServiceName }
  | { readonly event: 'resolved'; readonly service: Service }

/** Sorts addresses, so that two lists of the same addresses are equal. */
export function sortAddresses(addresses: Iterable<string>): string[] {
  return [...addresses].sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1))
}

function rank(address: string): number {
  if (!address.includes(':')) return address.startsWith('169.254.') ? 1 : 0
  return /^fe[89ab]/i.test(address) ? 3 : 2
}

/** One record of an answer, with the fields that service discovery uses. Names have no dot at the end. */
export type DnsRecord = {
  readonly name: string
  /** How long the record is valid, in seconds; 0 withdraws it. */
  readonly ttl: number
  /** The record replaces earlier records with this name and type. */
  readonly flush: boolean
} & (
  | { readonly type: 'PTR'; readonly data: string }
  | { readonly type: 'SRV'; readonly data: { readonly target: string; readonly port: number } }
  | { readonly type: 'TXT'; readonly data: readonly Uint8Array[] }
  | { readonly type: 'A' | 'AAAA'; readonly data: string }
)

export interface Question {
  readonly name: string
  readonly type: DnsRecord['type']
}

/** A PTR record that the asker already has, so that nobody has to send it again (RFC 6762, section 7.1). */
export interface KnownAnswer {
  readonly name: string
  readonly data: string
  readonly ttl: number
}

export interface Query {
  readonly questions: readonly Question[]
  readonly known: readonly KnownAnswer[]
}

/** The link that carries queries and answers. */
export interface Network {
  /** Sends a query to everybody. An error in sending is told to `failed`. */
  ask(query: Query): void
  close(): Promise<void>
}

export interface Listener {
  /** The records of one packet, and the address that sent it. */
  answered(records: readonly DnsRecord[], sender: string): void
  /** A packet has arrived from another machine, whatever it says. */
  heard(): void
  /** A packet could not be sent or read. */
  failed(cause: unknown): void
}

/** Opens the link. Rejects with a `RejoinError` when that is not possible. */
export type OpenNetwork = (listener: Listener) => Promise<Network>

/**
 * The form in which two equal DNS names are the same text: the case of ASCII letters does not count, nor does a dot at
 * the end.
 */
export function sameName(name: string): string {
  return name.replace(/\.$/, '').replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

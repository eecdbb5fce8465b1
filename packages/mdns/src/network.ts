/** One record of an answer, as far as service discovery uses it. Names have no dot at the end. */
export type DnsRecord = {
  readonly name: string
  /** For how long it may be believed, in seconds; 0 takes it back. */
  readonly ttl: number
  /** The record replaces what was said before of this name and type. */
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

/** A PTR record that the asker has, so that nobody has to send it again (RFC 6762, section 7.1). */
export interface KnownAnswer {
  readonly name: string
  readonly data: string
  readonly ttl: number
}

export interface Query {
  readonly questions: readonly Question[]
  readonly known: readonly KnownAnswer[]
}

/** The link that queries go out on and answers come in from. */
export interface Network {
  /** Sends a query to everybody. What cannot be sent is told to `failed`. */
  ask(query: Query): void
  close(): Promise<void>
}

export interface Listener {
  /** The records of one packet. */
  answered(records: readonly DnsRecord[]): void
  /** A packet of somebody else has come, whatever it says. */
  heard(): void
  /** A packet could not be sent or read. */
  failed(cause: unknown): void
}

/** Opens the link, or rejects with a `RejoinError` that says why it cannot. */
export type OpenNetwork = (listener: Listener) => Promise<Network>

/** Names of DNS are equal whatever the case of their ASCII letters. */
export function sameName(name: string): string {
  return name.replace(/\.$/, '').replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

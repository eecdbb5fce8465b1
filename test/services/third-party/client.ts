/** A client that others have made, as its users run it. */
export interface ThirdPartyClient {
  readonly name: string
  /** Reads a stream until `close`, and writes down what it shows its user. */
  open(url: string): Promise<ThirdPartyReader> | ThirdPartyReader
}

export interface ThirdPartyReader {
  /** Everything that the client has shown, in order. */
  readonly told: readonly Told[]
  /** Whether it has given up, or is done, and will not come back. */
  readonly stopped: boolean
  close(): Promise<void> | void
}

export interface Told {
  readonly type: string
  readonly data: string
}

/** Names that a user of an `EventSource` has to listen for: it shows nothing else. */
export const listenedTypes = ['message', 'step', 'hello', 'sync-required', 'checkpoint', 'close']

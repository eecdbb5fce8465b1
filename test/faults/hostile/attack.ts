/** One way to wear a hub out, by somebody who may read everything and publish nothing of others. */
export interface Attack {
  readonly name: string
  /** What is done, for the table. */
  readonly says: string
  /** Goes on until `stop` is aborted, and leaves nothing open. */
  run(target: Target, stop: AbortSignal): Promise<void>
}

/** What is attacked, and what is known of it. */
export interface Target {
  readonly port: number
  /** A channel whose events fill many answers. */
  readonly heavy: string
  /** A channel with as many events as its window holds. */
  readonly long: string
  /** A pattern over very many channels. */
  readonly wide: string
  /** An id from before all of these were filled. */
  readonly oldId: string
  /** How many of everything, as a part of what each attack says. */
  readonly strength: number
  /** An API key that may publish below `mallory/`. */
  readonly key: string
}

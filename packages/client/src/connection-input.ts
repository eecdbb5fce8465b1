import type { Hello } from '@rejoin/protocol'
import type { CloseReason } from './stream-state.ts'

/** What the connection machine is told, one thing at a time. */
export type Input =
  | Report
  /** Connects now, whatever the state is. */
  | { readonly type: 'connect' }
  | { readonly type: 'timer' }
  /** The page or the network was away and is back. */
  | { readonly type: 'wake' }
  /** The page was frozen, and is no longer. */
  | { readonly type: 'thaw' }
  /** The page is kept for the back button, or it is hidden and `pauseWhenHidden` is set. */
  | { readonly type: 'hide' }
  | { readonly type: 'close' }

/** What a transport or a receiver tells of a connection. */
export type Report =
  | ({ readonly type: 'answered' } & Answer)
  /** The transport cannot do what the options ask for, or does not exist here. */
  | { readonly type: 'unusable' }
  /** Bytes have arrived, if only a comment: the connection is alive. */
  | { readonly type: 'bytes' }
  /** Signs of life are overdue, as the transport knows before the machine does. */
  | { readonly type: 'late' }
  /** The server's `retry:`. */
  | { readonly type: 'retry'; readonly ms: number }
  | ({ readonly type: 'hello' } & Greeting)
  /**
   * An event has been handled. Told after its handlers ran: if told before, a page that is left in between would lose
   * the event.
   */
  | { readonly type: 'event'; readonly id: string | null }
  /** An id has arrived without an event for the user. It moves the cursor too. */
  | { readonly type: 'id'; readonly id: string | null }
  /** The user is about to be told of a gap, unless this input ends the connection. */
  | { readonly type: 'sync' }
  /** Whether the user's code is being asked for credentials. Until it answers, nothing is sent. */
  | { readonly type: 'asking'; readonly asking: boolean }
  /** The credentials for the next connection have arrived. */
  | { readonly type: 'renewed'; readonly headers: Headers }
  /** Whether reading waits for a handler. */
  | { readonly type: 'paused'; readonly paused: boolean }
  | ({ readonly type: 'ended' } & Ending)

/** The connection has ended. */
export interface Ending {
  /** The reason, when the hub (§4.10) or the client gives one. */
  readonly reason?: CloseReason | undefined
  /** The weight of this end as a fault, from a transport that cannot tell why it failed. */
  readonly against?: number
}

/** The head of a response. */
export interface Answer {
  readonly status: number
  /** A stream follows. Never with another status than 200. */
  readonly isStream: boolean | undefined
  readonly retryAfterMs: number
  /** The request went to the address for polls, which not every server has. */
  readonly isElsewhere?: boolean
  /** The server's message in the body of a rejection. */
  readonly closeMessage?: string | undefined
  /** Why a hub rejects a reader that may return (§4.12). */
  readonly reason?: CloseReason | undefined
}

/** The frame `hello`, which a hub sends first (§4.4). */
export interface Greeting {
  readonly id: string | null
  readonly hello: Partial<Hello>
}

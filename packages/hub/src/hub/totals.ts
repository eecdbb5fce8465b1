/** What a hub has done since it opened. */
export interface Totals {
  /** Events that came from the log. */
  events: number
  /** Events handed to readers. An event for a hundred readers counts a hundred times. */
  deliveries: number
  /** Bytes handed to readers, the frames of the protocol and heartbeats included. */
  bytes: number
}

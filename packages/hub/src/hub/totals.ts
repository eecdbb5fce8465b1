/** What a hub has done since it opened. */
export interface Totals {
  /** Events it has heard from the log. */
  events: number
  /** Events handed to readers: one that goes to a hundred counts a hundred. */
  deliveries: number
  /** Bytes handed to readers, all frames and heartbeats. */
  bytes: number
}

import * as v from 'valibot'

/** Settings by channel or pattern. */
export const channelSettings = v.record(v.string(), v.strictObject({ retain: v.optional(v.boolean()) }))

export interface ChannelSettings {
  /**
   * Keeps the newest event, or the newest of each `key`, whatever the window lets go of, and gives it to readers that have
   * lost their place.
   * @defaultValue false
   */
  retain?: boolean
}

/**
 * The longest time that a timer can wait. A timer that is set for longer fires at once, so a reader that is told to
 * stay away for a month would come back in a tight loop.
 */
export const longestTimerMs = 2 ** 31 - 1

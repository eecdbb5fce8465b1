/**
 * The longest a timer can wait. One set for longer fires at once, and a reader told to stay away for a month would come
 * back in a tight loop.
 */
export const longestTimerMs = 2 ** 31 - 1

/** A clock for the client that stands still until it is told how much time has passed. */
const timers = new Map()
let now = Date.UTC(2026, 0, 1)
let made = 0

globalThis.clock = {
  now: () => now,
  random: () => 0.5,
  setTimeout(callback, ms) {
    timers.set(++made, { at: now + ms, callback })
    return made
  },
  clearTimeout: (timer) => timers.delete(timer),
  advance(ms) {
    const until = now + ms
    for (;;) {
      const [next] = [...timers].filter(([, { at }]) => at <= until).sort(([, a], [, b]) => a.at - b.at)
      if (!next) break
      timers.delete(next[0])
      now = next[1].at
      next[1].callback()
    }
    now = until
  },
}

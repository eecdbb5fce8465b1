/**
 * Whether a server under `appendfsync everysec` confirms writes before it has flushed them. Such a server begins at most one flush
 * a second. Each of three writes is sent after the confirmation of the one before, so each needs a flush of its own, and the third
 * cannot be on the disk within a second of the first confirmation. Two writes would not tell: the flush behind the first may
 * have taken longer than a second itself.
 *
 * `confirm` writes something, and waits at most that long for its confirmation. Undefined when the server has confirmed nothing
 * in time, so that there is nothing to judge.
 */
export async function confirmsEarly(
  confirm: (withinMs: number) => Promise<boolean>,
  { firstWithinMs, now }: { readonly firstWithinMs: number; now(): number },
): Promise<boolean | undefined> {
  if (!(await confirm(firstWithinMs))) return undefined
  const deadline = now() + soonestMs
  for (let writes = 2; writes > 0; writes -= 1) {
    const leftMs = Math.floor(deadline - now())
    // WAITAOF takes 0 for no limit.
    if (leftMs < 1 || !(await confirm(leftMs))) return false
  }
  return now() < deadline
}

/**
 * The same rule for the confirmations that follow. A server that has writes to do in every turn flushes before it confirms, and
 * confirms too early only when it is less busy. So one trial at the start proves little about a server that was busy then.
 */
export function createConfirmationPace(): ConfirmationPace {
  let times: readonly number[] = []
  return {
    isEarly(confirmedAt) {
      const [first] = times.length === 2 ? times : []
      times = [...times.slice(-1), confirmedAt]
      return first !== undefined && confirmedAt - first < soonestMs
    },
    interrupt() {
      times = []
    },
  }
}

/** Watches confirmations, of writes that were each sent after the confirmation before. */
export interface ConfirmationPace {
  /** Notes a confirmation. True when it and the two before it came faster than a server can flush. */
  isEarly(confirmedAt: number): boolean
  /** The next confirmation does not follow those before it: another server answers, or nothing was confirmed in time. */
  interrupt(): void
}

// A second, less what the clock of Redis is behind on a busy machine.
const soonestMs = 800

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

// A second, less what the clock of Redis is behind on a busy machine.
const soonestMs = 800

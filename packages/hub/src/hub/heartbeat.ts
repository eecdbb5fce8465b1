import { encodeHeartbeat } from '@rejoin/protocol'
import type { Environment } from '../environment.ts'
import { type SharedBytes, shareBytes } from './sink.ts'

/** A reader that is to hear something at least once per interval. */
export interface Listener {
  /** A full reader is not written to: the beat would only wait behind what it has not read yet. */
  readonly full: boolean
  push(bytes: SharedBytes): boolean
}

export interface Heartbeat {
  add(listener: Listener): void
  remove(listener: Listener): void
  stop(): void
}

// Ten thousand writes at once would hold up everything else for tens of milliseconds; spread over these, few are due
// at a time.
const slotCount = 25

/** One timer for all readers, which are spread over the slots of the interval. */
export function createHeartbeat(intervalMs: number, environment: Environment): Heartbeat {
  const beat = shareBytes([Buffer.from(encodeHeartbeat())])
  const slots = Array.from({ length: slotCount }, () => new Set<Listener>())
  const slotOf = new Map<Listener, Set<Listener>>()
  let next = 0
  let due = 0

  function tick(): void {
    for (const listener of slots[due] as Set<Listener>) {
      if (!listener.full) listener.push(beat)
    }
    due = (due + 1) % slotCount
    cancel = environment.after(intervalMs / slotCount, tick)
  }
  let cancel = environment.after(intervalMs / slotCount, tick)

  return {
    add(listener) {
      const slot = slots[next] as Set<Listener>
      next = (next + 1) % slotCount
      slot.add(listener)
      slotOf.set(listener, slot)
    },
    remove(listener) {
      slotOf.get(listener)?.delete(listener)
      slotOf.delete(listener)
    },
    stop: () => cancel(),
  }
}

import { isFrameDue, nextFrame } from '../bindings/frame.ts'
import { isOpeningDue } from '../bindings/opening.ts'
import { closeStreams } from '../bindings/shared-streams.ts'
import { systemClock } from '../clock.ts'
import type { Clock } from '../index.ts'
// Streams load these parts when they need them. They are loaded here, so that no test waits for a file.
import '../option-check.ts'
import '../optional.ts'
import '../rejection.ts'
import '../transports/fallbacks.ts'
import '../transports/shared.ts'

/** A hub in the process of a test, as `createTestHub` of `@rejoin/hub/testing` makes it. */
export interface AttachableHub {
  readonly fetch: typeof globalThis.fetch
  readonly clock: Clock
  answers(url: string | URL): boolean
  join(page: { loaded(): Promise<void>; settle(): Promise<boolean>; leave(): void }): void
}

/**
 * Lets all streams of this process read from a hub in the same process, on the hub's time, without a change to the
 * application. Requests for the hub's paths go to the hub, other requests go where they went before. Ends with
 * `hub.close()`.
 *
 * ```ts
 * const hub = attachTo(await createTestHub())
 * onTestFinished(hub.close)
 * ```
 *
 * @returns the same hub
 */
export function attachTo<Hub extends AttachableHub>(hub: Hub): Hub {
  const { fetch } = globalThis
  const clock = { ...systemClock }
  closeStreams()
  // Every stream without a clock of its own uses this object.
  Object.assign(systemClock, hub.clock)
  globalThis.fetch = (input, init) => {
    const url = input instanceof Request ? input.url : input
    return (hub.answers(pathOf(url)) ? hub.fetch : fetch)(input, init)
  }
  hub.join({
    loaded,
    async settle() {
      await loaded()
      if (isOpeningDue()) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        return true
      }
      if (!isFrameDue()) return false
      await new Promise<void>((resolve) => nextFrame(resolve))
      return true
    },
    leave() {
      closeStreams()
      Object.assign(systemClock, clock)
      globalThis.fetch = fetch
    },
  })
  return hub
}

/**
 * Resolves when streams have the parts that they have begun to load. A test runner may fetch a loaded part from another
 * process again. Imports finish in the order in which they start, and one part loads another.
 */
async function loaded(): Promise<void> {
  await import('../optional.ts')
  await import('../rejection.ts')
  await import('../transports/shared.ts')
}

/** The path of a URL, which may be relative to a page in a folder. */
function pathOf(url: string | URL): string {
  const base = globalThis.document?.baseURI
  return new URL(url, base?.startsWith('http') ? base : 'http://localhost/').pathname
}

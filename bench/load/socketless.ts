import type { Hub } from '@rejoin/hub'
import type { Start, Subscription } from '@rejoin/hub/internal'

/** A reader without a socket, that takes everything at once and says when it has caught up. */
export function readWithoutSocket(hub: Hub, subscription: Subscription, start: Start): SocketlessReader {
  let bytes = 0
  const live = new Promise<void>((resolve) => {
    const sink = {
      write({ plain }: { plain: Uint8Array }) {
        bytes += plain.length
        return true
      },
      pending: 0,
      end() {},
      destroy() {},
      caughtUp: resolve,
    }
    hub.port.subscribe({ kind: 'admitted', request: { subscription, start } }, sink)
  })
  return { live, bytes: () => bytes }
}

export interface SocketlessReader {
  readonly live: Promise<void>
  bytes(): number
}

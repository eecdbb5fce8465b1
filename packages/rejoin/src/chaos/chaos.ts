import type { RequestListener } from 'node:http'
import { type Hub, systemEnvironment } from '@rejoin/hub'
import { createFaultyNetwork, createRevocableRights, type KeptLog, keptLog } from '@rejoin/hub/internal'
import type { MemoryLogOptions } from '@rejoin/hub/memory'
import type { Route } from '../http/routes.ts'
import { chaosRoutes } from './chaos-routes.ts'
import { type FaultyStreamsOptions, faultyStreams } from './faulty-streams.ts'

/** The troubles that a test orders from the running program. This object and its log outlive the restarts. */
export interface Chaos {
  readonly log: KeptLog
  readonly routes: readonly Route[]
  /** Serves the readers of a hub across a network that can be cut, and passes other requests to `others`. */
  streams(hub: Hub, options: FaultyStreamsOptions, others: RequestListener): RequestListener
  /** Called when the program has started with this hub. */
  started(hub: Hub): void
}

/** @param restart - stops the program, calls `between`, and starts it again */
export function createChaos(memory: MemoryLogOptions, restart: (between: () => Promise<void>) => void): Chaos {
  const log = keptLog(memory)
  const rights = createRevocableRights()
  const network = createFaultyNetwork(systemEnvironment)
  let starts = 0
  let hub: Hub | undefined

  return {
    log,
    routes: chaosRoutes({
      ...network,
      starts: () => starts,
      expire(what) {
        if (what === 'events') log.expire()
        else for (const { connection } of hub?.admin.connections() ?? []) hub?.admin.disconnectHere(connection, expired)
      },
      async revoke(subject) {
        await Promise.all(rights.revoke(subject).map((each) => hub?.revoke(each)))
      },
      restart: (events) => restart(async () => (events === 'lost' ? log.lose() : undefined)),
    }),
    streams: (served, options, others) => faultyStreams(served, { network, rights }, options, others),
    started(opened) {
      hub = opened
      starts += 1
    },
  }
}

const expired = { reason: 'token-expired' } as const

import type { LoadCommands } from '../load/client.ts'
import { cores } from '../processes/cores.ts'
import { type Remote, type RemoteOptions, startRemote } from '../processes/remote.ts'
import type { Publishing, ServerCommands } from '../servers/serve.ts'

/** A server under test, running. */
export interface Subject {
  readonly name: string
  readonly port: number
  readonly tls: boolean
  /** The processes whose time and memory count as the server's. */
  readonly pids: readonly number[]
  /** Where the shared channel is read, and where a POST publishes to it. */
  readonly readPath: string
  readonly publishPath: string
  /** Asked for what its readers cannot see; undefined for a server that is not one of our programs. */
  readonly server?: Remote<ServerCommands>
  publish(publishing: Publishing): Promise<void>
  stopPublishing(): Promise<void>
  stop(): Promise<void>
}

/** The process that reads, and that publishes where a server has no publisher inside. */
export type Load = Remote<LoadCommands>

export function startLoad({ first = false }: Pick<RemoteOptions, 'first'> = {}): Load {
  return startRemote(new URL('../load/client.js', import.meta.url), { core: cores.load, first })
}

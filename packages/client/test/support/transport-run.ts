import type { OpenRequest } from '../../src/connection.ts'
import type { Report } from '../../src/connection-input.ts'
import type { Block, Transport } from '../../src/transports/transport.ts'

/** Runs one connection of a transport and writes down what it tells, as the machine would hear it. */
export function runTransport(transport: Transport, options: RunOptions = {}): Run {
  const { cursor = null, refresh = false, receive } = options
  const controller = new AbortController()
  const waiting = new Set<() => void>()
  const reports: Report[] = []
  const blocks: Block[] = []
  const look = () => {
    for (const each of waiting) each()
  }
  const request: OpenRequest = { clientId: 'me', generation: 1, cursor, inQuery: false, refresh }
  const sink = {
    tell(report: Report) {
      reports.push(report)
      // As the machine does when there is no stream to read.
      if (report.type === 'unusable') controller.abort()
      if (report.type === 'answered' && !(report.status === 200 && report.isStream)) controller.abort()
      look()
    },
    receive(block: Block) {
      blocks.push(block)
      look()
      return receive?.(block)
    },
  }
  return {
    reports,
    blocks,
    abort: () => controller.abort(),
    ended: transport(request, sink, controller.signal),
    waitFor: (condition) =>
      new Promise((resolve) => {
        const check = () => {
          if (!condition()) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
  }
}

export interface RunOptions {
  cursor?: string | null
  refresh?: boolean
  receive?(block: Block): Promise<void> | undefined
}

export interface Run {
  readonly reports: Report[]
  readonly blocks: Block[]
  /** Settles with the transport's own promise. */
  readonly ended: Promise<void>
  abort(): void
  /** Resolves once the condition holds; the test's own time limit is the bound. */
  waitFor(condition: () => boolean): Promise<void>
}

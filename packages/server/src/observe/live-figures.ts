import type { RequestListener } from 'node:http'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { watchFigures } from './figures.ts'
import { createNodes } from './nodes.ts'
import type { OperationDoc } from './openapi.ts'
import type { Route } from './routes.ts'

/**
 * The figures of a hub as a stream of our own kind, one event a second: it resumes, and `?replay=300` begins with the last
 * five minutes. It has a hub to itself, in memory, so that looking at the other one neither fills its log nor shows in it.
 */
export interface LiveFigures {
  readonly route: Route
  close(): Promise<void>
}

export async function createLiveFigures(hub: Hub, version: string): Promise<LiveFigures> {
  const figuresOf = watchFigures(hub, version)
  const nodes = createNodes(hub)
  const log = memoryLog({ window: { maxEvents: keptSeconds, maxAgeMs: keptSeconds * 1000 } })
  const own = await createHub({ log, heartbeatMs: 10_000, retryMs: 1000, hotBytes: 1024 * 1024 })
  const serve = nodeHandler(own)
  let due = performance.now() + everyMs

  const timer = setInterval(() => {
    const lateMs = Math.max(0, Math.round(performance.now() - due))
    due = performance.now() + everyMs
    const figures = figuresOf(lateMs, nodes.known)
    nodes.tell(figures)
    own.publish(channel, { type: 'figures', data: figures }).catch((cause) => hub.failed(cause))
  }, everyMs).unref()

  const handOver: RequestListener = (request, response) => {
    const query = request.url?.indexOf('?') ?? -1
    request.url = `/events/${channel}${query < 0 ? '' : request.url?.slice(query)}`
    serve(request, response)
  }

  return {
    route: { method: 'GET', path: '/admin/live', open: 'to-admins', doc, handle: () => ({ handOver }) },
    async close() {
      clearInterval(timer)
      await own.close()
    },
  }
}

const channel = 'figures'
const everyMs = 1000
const keptSeconds = 600

const doc: OperationDoc = {
  summary: 'What the dashboard shows: an event `figures` a second, as a stream that resumes',
  parameters: [
    {
      ...{ name: 'replay', in: 'query', schema: { type: 'integer' } },
      description: `How many of the last ${keptSeconds} seconds come first.`,
    },
  ],
  answers: { 200: { description: 'The stream.', content: { 'text/event-stream': { schema: { type: 'string' } } } } },
}

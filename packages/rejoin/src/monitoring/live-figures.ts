import type { RequestListener } from 'node:http'
import { createHub, type Hub, type Message } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import type { Route } from '../http/routes.ts'
import { type Figures, type FiguresWatch, watchFigures } from './figures.ts'
import { createNodes } from './nodes.ts'

/**
 * The figures of a hub as a resumable stream, one event per second. `?replay=300` begins with the last five minutes. The stream
 * has a hub of its own, in memory, so that a dashboard neither fills the log of the observed hub nor changes its figures.
 *
 * The second hub is created when the first dashboard opens. V8 optimises code better while there is one hub: beside a second hub,
 * a publish takes 15 % more time (`bench -- program`).
 */
export interface LiveFigures extends Pick<FiguresWatch, 'rejected' | 'listRejected'> {
  readonly route: Route
  close(): Promise<void>
}

export function createLiveFigures(hub: Hub, version: string, state: () => Figures['state']): LiveFigures {
  const watch = watchFigures(hub, version)
  const nodes = createNodes(hub)
  const kept: Message[] = []
  let opening: Promise<Hub> | undefined
  let due = performance.now() + everyMs
  let budget: Figures['budget'] = null
  const askBudget = async () => {
    // While the log does not answer, the last known budget stays. The dashboard shows elsewhere that the log is away.
    budget = (await hub.log.budget?.().catch(() => budget)) ?? null
  }
  void askBudget()

  const timer = setInterval(() => {
    const lateMs = Math.max(0, Math.round(performance.now() - due))
    due = performance.now() + everyMs
    const figures = watch.take(lateMs, { nodes: nodes.known, budget, state: state() })
    void askBudget()
    nodes.tell(figures)
    const message = { type: 'figures', data: figures }
    if (!opening && kept.push(message) > keptSeconds) kept.shift()
    opening?.then((own) => own.publish(channel, message)).catch((cause) => hub.port.failed(cause))
  }, everyMs).unref()

  async function open(): Promise<Hub> {
    const log = memoryLog({ window: { maxEvents: keptSeconds, maxAgeMs: keptSeconds * 1000 } })
    const own = await createHub({ log, heartbeatMs: 10_000, retryMs: 1000, hotBytes: 1024 * 1024 })
    if (kept.length > 0) await own.publishBatch(kept.splice(0).map((message) => ({ channel, ...message })))
    return own
  }

  let serve: Promise<RequestListener> | undefined
  const handOver: RequestListener = (request, response) => {
    const query = request.url?.indexOf('?') ?? -1
    request.url = `/events/${channel}${query < 0 ? '' : request.url?.slice(query)}`
    opening ??= open()
    serve ??= opening.then(nodeHandler)
    void serve.then((listener) => listener(request, response))
  }

  return {
    route: { method: 'GET', path: '/admin/live', open: 'to-admins', handle: () => ({ handOver }) },
    rejected: watch.rejected,
    listRejected: watch.listRejected,
    async close() {
      clearInterval(timer)
      await (await opening)?.close()
    },
  }
}

const channel = 'figures'
const everyMs = 1000
const keptSeconds = 600

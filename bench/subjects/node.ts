import { cores } from '../processes/cores.ts'
import { type Remote, startRemote } from '../processes/remote.ts'
import type { Certificate, ServerCommands } from '../servers/serve.ts'
import type { Subject } from './subject.ts'

/** The hub behind each of its adapters; `rejoin` is the one for Node's own server. */
export const adapters = ['rejoin', 'rejoin, express', 'rejoin, fastify', 'rejoin, hono', 'rejoin, fetch'] as const

export type NodeSubjectName = (typeof adapters)[number] | 'rejoin, program' | 'better-sse' | 'plain res.write'

type NodeSubject = Subject & { readonly server: Remote<ServerCommands> }

const programs: Record<NodeSubjectName, string> = {
  rejoin: 'rejoin.js',
  'rejoin, express': 'rejoin-express.js',
  'rejoin, fastify': 'rejoin-fastify.js',
  'rejoin, hono': 'rejoin-hono.js',
  'rejoin, fetch': 'rejoin-fetch.js',
  'rejoin, program': 'rejoin-program.js',
  'better-sse': 'better-sse.js',
  'plain res.write': 'plain.js',
}

export async function startNode(name: NodeSubjectName, certificate?: Certificate): Promise<NodeSubject> {
  const program = new URL(`../servers/${programs[name]}`, import.meta.url)
  const server = startRemote<ServerCommands>(program, { core: cores.server, nodeFlags: ['--expose-gc'] })
  const port = await server.call('listen', { certificate })
  return {
    name,
    server,
    port,
    tls: certificate !== undefined,
    pids: [server.pid],
    readPath: '/events/shared',
    publishPath: '/publish/shared?type=tick',
    publish: (publishing) => server.call('publish', publishing),
    stopPublishing: () => server.call('stopPublishing', undefined),
    stop: () => server.stop(),
  }
}

/** A hub whose hot window is full, so that its memory is that of one that has run for long. */
export async function startFilledHub(eventBytes: number): Promise<NodeSubject> {
  const subject = await startNode('rejoin')
  await subject.server.call('publishAtOnce', { events: filling, eventBytes })
  return subject
}

// Over the default of 32 MB, at the 245 bytes and more of a frame with 200 bytes of data.
const filling = 140_000

import { RejoinError } from '@rejoin/protocol'
import { fieldOf } from './checks.ts'

/**
 * The caller's client: of `ioredis` or of `redis`, a single one or that of a Cluster. It only shows how to connect. The log
 * makes connections of its own like it, which send nothing again by themselves: a command that was sent twice, or to
 * another server than before, is the log's business.
 */
export type RedisClient = IoRedisClient | NodeRedisClient

/** What is used of a client of the package `ioredis`. */
export interface IoRedisClient {
  duplicate(...options: never[]): unknown
  call(command: string, ...args: string[]): Promise<unknown>
}

/** What is used of a client of the package `redis`. */
export interface NodeRedisClient {
  duplicate(options?: never): unknown
  sendCommand(...args: never[]): Promise<unknown>
}

/** One connection. */
export interface Connection {
  /** Rejects when the connection ends before the answer. */
  send(args: readonly string[]): Promise<unknown>
  /** A command that names no key, to the process with this `run_id`; in a Cluster, there are several to send it to. */
  sendTo(process: string, args: readonly string[]): Promise<unknown>
  /** Ends it now; what is under way rejects. */
  destroy(): void
  /** Resolves when it is over, whoever ended it. */
  readonly over: Promise<void>
}

export interface Connector {
  connect(): Promise<Connection>
}

/**
 * @param key - one of the log's keys: where to send a command in a Cluster
 */
export function connectorOf(client: RedisClient, key: string): Connector {
  if (typeof client !== 'object' || client === null) throw noClient()
  if ('call' in client && 'duplicate' in client) return { connect: () => connectIoRedis(client as never) }
  if ('sendCommand' in client && 'duplicate' in client) return { connect: () => connectNodeRedis(client as never, key) }
  throw noClient()
}

function noClient(): RejoinError {
  return new RejoinError(
    'redisLog needs a client of the package ioredis or redis, or an address such as redis://127.0.0.1:6379. Give one of them.',
    { code: 'invalid-option' },
  )
}

async function connectIoRedis(template: IoRedis): Promise<Connection> {
  const alone = {
    lazyConnect: true,
    // Keys are named inside the script, where a prefix of the client would not reach them.
    keyPrefix: '',
    retryStrategy: () => null,
    reconnectOnError: null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    ...patient,
  }
  const client = template.isCluster
    ? template.duplicate([], {
        lazyConnect: true,
        keyPrefix: '',
        clusterRetryStrategy: () => null,
        maxRedirections: 3,
        // A replica may be behind. Today's package takes a command in capitals for no read, which nobody promises.
        scaleReads: 'master',
        // Not every version of the package keeps those that are not named, such as a password.
        redisOptions: { ...template.options?.redisOptions, ...patient },
      })
    : template.duplicate(alone)
  const over = new Promise<void>((resolve) => void client.once('end', () => resolve()))
  // Whoever waits for an answer hears of it; without a listener it would end the process.
  let failure: unknown
  client.on('error', (error) => {
    failure = error
  })
  try {
    await client.connect()
  } catch (error) {
    client.disconnect()
    // Which says only that it is closed.
    throw failure ?? error
  }
  let isGivenUp = false
  const send = ([command = '', ...args]: readonly string[]) => client.call(command, ...args)
  return {
    over,
    send,
    sendTo: template.isCluster ? toProcessOf(client) : (_, args) => send(args),
    destroy() {
      // All whose answer is late give it up, and each time the client would listen for its end once more.
      if (!isGivenUp) client.disconnect()
      isGivenUp = true
    },
  }
}

/** Without a key, the client of a Cluster asks any node; each of its nodes has a client of its own. */
function toProcessOf(cluster: IoRedis): Connection['sendTo'] {
  let found: { readonly process: string; readonly node: IoRedis } | undefined
  return async (process, [command = '', ...args]) => {
    if (found?.process !== process) {
      found = undefined
      for (const node of cluster.nodes('master')) {
        if (fieldOf(String(await node.call('INFO', 'server')), 'run_id') === process) found = { process, node }
      }
    }
    if (!found) throw new Error('the master that has the log is not among the nodes')
    return found.node.call(command, ...args)
  }
}

async function connectNodeRedis(template: NodeRedis, key: string): Promise<Connection> {
  const isCluster = 'slots' in template
  // Answers of the older protocol are lists, and nobody maps them to other types; and keys are named inside the script, where a prefix would not reach them.
  const plain = {
    RESP: 2,
    keyPrefix: '',
    commandOptions: {},
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
  }
  const once = { reconnectStrategy: false, connectTimeout: connectWithinMs, socketTimeout: undefined }
  const client = isCluster
    ? template.duplicate({
        RESP: 2,
        commandOptions: {},
        // To the one master that has the log: a Cluster whose other masters are away serves it all the same, and a client
        // that connects to all of them waits for the last.
        minimizeConnections: true,
        defaults: {
          ...template.options?.defaults,
          socket: { ...template.options?.defaults?.socket, ...once },
          ...plain,
        },
      })
    : template.duplicate({ socket: { ...template.options?.socket, ...once }, ...plain })
  let end: () => void = () => undefined
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  client.on('error', () => {
    // That of a Cluster tells of each node that it asked in vain who has what.
    if (!isCluster || !client.isOpen) end()
  })
  client.once('end', end)
  client.once('node-error', end)
  client.once('node-disconnect', end)
  try {
    await client.connect()
  } catch (error) {
    close(client)
    throw error
  }
  const send: Connection['send'] = isCluster
    ? (args) => client.sendCommand(key, false, [...args])
    : (args) => client.sendCommand([...args])
  return {
    over,
    send,
    sendTo: (_, args) => send(args),
    destroy() {
      close(client)
      end()
    },
  }
}

function close(client: NodeRedis): void {
  // A client that has ended by itself throws when it is ended again.
  if (client.isOpen) client.destroy()
}

/** What the clients have in common is too little for a type that both are assignable to, so each is known by its own. */
interface IoRedis {
  readonly isCluster?: boolean
  readonly options?: { readonly redisOptions?: object }
  duplicate(...options: unknown[]): IoRedis
  connect(): Promise<unknown>
  disconnect(): void
  call(command: string, ...args: string[]): Promise<unknown>
  nodes(role: 'master'): IoRedis[]
  on(event: string, listener: (error: unknown) => void): unknown
  once(event: string, listener: () => void): unknown
}

interface NodeRedis {
  readonly isOpen: boolean
  readonly options?: { readonly socket?: object; readonly defaults?: { readonly socket?: object } }
  duplicate(options: object): NodeRedis
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(...args: unknown[]): Promise<unknown>
  on(event: string, listener: () => void): unknown
  once(event: string, listener: () => void): unknown
}

const connectWithinMs = 2000

// How long an answer may take is the log's business: a tail waits for two seconds where nothing comes.
const patient = { connectTimeout: connectWithinMs, commandTimeout: undefined, socketTimeout: undefined }

import type { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'
import { fieldOf } from './checks.ts'

/**
 * The caller's client, of the package `ioredis` or `redis`, for one server or for a Cluster. The log takes from it how to
 * connect, and makes connections of its own. These never repeat a command by themselves: only the log can decide whether a
 * command may be sent twice, or to another server.
 */
export type RedisClient = IoRedisClient | NodeRedisClient

/** The part of a client of `ioredis` that the log uses. */
export interface IoRedisClient {
  duplicate(...options: never[]): unknown
  call(command: string, ...args: string[]): Promise<unknown>
}

/** The part of a client of `redis` that the log uses. */
export interface NodeRedisClient {
  duplicate(options?: never): unknown
  sendCommand(...args: never[]): Promise<unknown>
}

export interface Connection {
  /** Rejects when the connection ends before the answer. */
  send(args: readonly string[]): Promise<unknown>
  /** Sends a command without keys to the process with this `run_id`. A Cluster has several processes. */
  sendTo(process: string, args: readonly string[]): Promise<unknown>
  /** Ends the connection now. Commands that are under way reject. */
  destroy(): void
  /** Resolves when the connection is over, by whatever end. */
  readonly over: Promise<void>
}

export interface Connector {
  connect(): Promise<Connection>
}

/**
 * @param key - one of the log's keys. In a Cluster it tells which node has the log.
 */
export function connectorOf(client: RedisClient, key: string): Connector {
  if (typeof client !== 'object' || client === null) throw noClient()
  if ('call' in client && 'duplicate' in client) return { connect: () => connectIoRedis(client as never) }
  if ('sendCommand' in client && 'duplicate' in client) return { connect: () => connectNodeRedis(client as never, key) }
  throw noClient()
}

function noClient(): RejoinError {
  return invalidOption(
    'redisLog needs a client of the package ioredis or redis, or an address such as redis://127.0.0.1:6379. Give one of them.',
  )
}

async function connectIoRedis(template: IoRedis): Promise<Connection> {
  const alone = {
    lazyConnect: true,
    // The script names its keys itself, and a prefix of the client would not reach them.
    keyPrefix: '',
    retryStrategy: () => null,
    reconnectOnError: null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    ...unlimited,
  }
  const client = template.isCluster
    ? template.duplicate([], {
        lazyConnect: true,
        keyPrefix: '',
        clusterRetryStrategy: () => null,
        maxRedirections: 3,
        // A replica may be behind. The package sends a command in capitals to the master anyway, but does not promise that.
        scaleReads: 'master',
        // Some versions of the package drop the options that are not named here, such as a password.
        redisOptions: { ...template.options?.redisOptions, ...unlimited },
      })
    : template.duplicate(alone)
  const over = new Promise<void>((resolve) => void client.once('end', () => resolve()))
  // The callers of `send` get the error by their promises. Without a listener, the event would end the process.
  let failure: unknown
  client.on('error', (error) => {
    failure = error
  })
  try {
    await client.connect()
  } catch (error) {
    client.disconnect()
    // `error` says only that the connection is closed.
    throw failure ?? error
  }
  let isGivenUp = false
  const send = ([command = '', ...args]: readonly string[]) => client.call(command, ...args)
  return {
    over,
    send,
    sendTo: template.isCluster ? toProcessOf(client) : (_, args) => send(args),
    destroy() {
      // Every caller whose answer is late destroys the connection, and the client would add a listener each time.
      if (!isGivenUp) client.disconnect()
      isGivenUp = true
    },
  }
}

/** The client of a Cluster sends a command without keys to any node. So this finds the node's own client by its `run_id`. */
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
  // With RESP 2 and no options, every answer is a list of strings. The script names its keys itself, and a prefix of the client
  // would not reach them.
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
        // Connects only to the master that has the log. Otherwise the client would wait for all masters, and the log does not
        // need the others.
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
    // The client of a Cluster also reports each node that did not answer its question for the slots. The connection goes on.
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
  // `destroy` throws for a client that has ended by itself.
  if (client.isOpen) client.destroy()
}

/** The two packages have too little in common for one type, so each client has a type of its own. */
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

// The client must not limit how long an answer takes: a tail waits for two seconds when there is no event. The log has its own
// limit.
const unlimited = { connectTimeout: connectWithinMs, commandTimeout: undefined, socketTimeout: undefined }

/**
 * A client for the address of a Redis, of the package that the application has installed. The client never connects: the log
 * takes from it how to connect.
 */
export async function clientAt(address: string): Promise<RedisClient> {
  const ioredis = await installed<{ Redis: new (url: string, options: object) => IoRedisClient }>('ioredis')
  if (ioredis) return new ioredis.Redis(address, { lazyConnect: true })
  const redis = await installed<{ createClient(options: object): NodeRedisClient }>('redis')
  if (redis) return redis.createClient({ url: address })
  throw invalidOption('redisLog was given an address, and no client is installed. Run `npm install ioredis`.')
}

/** The message leaves the address out, because it may contain a password. */
export function checkAddress(address: string): void {
  if (/^rediss?:\/\/./.test(address)) return
  throw invalidOption('The address of a Redis begins with redis:// or rediss://. Give one, or a client.')
}

/** Undefined for a package that is not installed. Throws when an installed package fails, so that its reason is seen. */
async function installed<Package>(name: string): Promise<Package | undefined> {
  try {
    return (await import(name)) as Package
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

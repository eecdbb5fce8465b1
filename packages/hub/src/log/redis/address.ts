import { invalidOption } from '../../invalid-option.ts'
import type { IoRedisClient, NodeRedisClient, RedisClient } from './client.ts'

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

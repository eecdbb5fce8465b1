import type { Grant } from '../hub/readers/grant.ts'

/** What every adapter can be told. `Call` is what its framework calls a handler with. */
export interface AdapterOptions<Call extends readonly unknown[]> {
  /**
   * Says who sent a request and what they may do; null is answered with 401. Asked for every request, and again before a
   * reader that has fallen behind reads on. Left out, everybody may do everything.
   */
  authorize?: (...call: Call) => Grant | null | Promise<Grant | null>
  /**
   * Says for how many milliseconds the sender of a publish has to wait: the publish is answered with 429 and `Retry-After`.
   * 0 lets it through. `subject` is that of its rights; null when it has none, or could not show any. Asked after `authorize`,
   * before the body is read. Left out, nobody has to wait.
   */
  rateLimit?: (subject: string | null, ...call: Call) => number
  /**
   * Bytes that may wait for one reader before it is considered slow, and is served from the log when it reads again. Also
   * what each slow reader costs in memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number
}

/** For adapters that see the address as the client wrote it. Routers that take their own part off need none of this. */
export interface BasePathOptions {
  /**
   * What stands before the hub's paths: with `/api`, streams are read at `/api/events/<channel>`. Requests for anything
   * else are not the hub's.
   * @defaultValue ''
   */
  basePath?: string
}

/** For adapters whose framework does not know which proxies to believe. */
export interface ProxyOptions {
  /**
   * Whether requests come through a proxy of yours, so that `X-Forwarded-For` and `X-Forwarded-Last-Event-Id` can be
   * believed. Set without such a proxy, any client can pretend to be another address.
   * @defaultValue false
   */
  trustProxy?: boolean
}

/** For adapters that read bodies themselves. */
export interface BodyOptions {
  /**
   * The largest body of a publish, in bytes; a larger one is answered with 413, once its sender is known and allowed.
   * @defaultValue 262144, which is also the most
   */
  maxBodyBytes?: number
}

/** For a stream at a path of the program's own. */
export interface SubscribeOptions<Call extends readonly unknown[]> extends AdapterOptions<Call> {
  /**
   * The channels of the stream, whatever the request asks for. Left out, the one that the route's pattern has matched; of a
   * route that matches none, those in `?channel=`.
   */
  channels?: (...call: Call) => string | readonly string[] | Promise<string | readonly string[]>
  /**
   * Whether `?channel=` may name more channels than the one that the route's pattern has matched. A guard of the route sees
   * only that one: allow more where `authorize` judges all of them.
   * @defaultValue false
   */
  moreChannels?: boolean
}

export const defaultBudgetBytes = 64 * 1024

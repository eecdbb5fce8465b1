import type { Grant } from '../hub/readers/grant.ts'

/** The options of every adapter. `Call` holds the arguments that the framework passes to a handler. */
export interface AdapterOptions<Call extends readonly unknown[]> {
  /**
   * Says who sent a request, and what the sender may do; null is answered with 401. Called for every request, and again before
   * a reader that has fallen behind reads on.
   * @defaultValue none: everybody may do everything
   */
  authorize?: ((...call: Call) => Grant | null | Promise<Grant | null>) | undefined
  /**
   * Says for how many milliseconds a publisher has to wait. 0 lets the publish through; otherwise it is answered with 429 and
   * `Retry-After`. `subject` comes from the publisher's rights, and is null when they have none or `authorize` gave none. Called
   * after `authorize`, before the body is read.
   * @defaultValue none: nobody has to wait
   */
  rateLimit?: ((subject: string | null, ...call: Call) => number) | undefined
  /**
   * Bytes that may wait for one reader. A reader with more is slow: it gets nothing until it has read them, and then catches up
   * from the log. Each slow reader costs this much memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number | undefined
}

/** Options of adapters that see the whole path, as the client sent it. Frameworks that strip the prefix of a mount need none. */
export interface BasePathOptions {
  /**
   * The prefix of the hub's paths: with `/api`, streams are read at `/api/events/<channel>`. The hub does not answer requests
   * for other paths.
   * @defaultValue ''
   */
  basePath?: string | undefined
}

/** Options of adapters whose framework does not know which proxies to trust. */
export interface ProxyOptions {
  /**
   * Whether all requests come through a proxy of yours. If so, the hub believes `X-Forwarded-For` and
   * `X-Forwarded-Last-Event-Id`. Without such a proxy, any client could then pretend to have another address.
   * @defaultValue false
   */
  trustProxy?: boolean | undefined
}

/** Options of adapters that read bodies themselves. */
export interface BodyOptions {
  /**
   * The largest body of a publish, in bytes. A larger body is answered with 413, after the rights of its sender are checked.
   * @defaultValue 262144, which is also the most
   */
  maxBodyBytes?: number | undefined
}

/** Options of a stream at a route of the program's own. */
export interface SubscribeOptions<Call extends readonly unknown[]> extends AdapterOptions<Call> {
  /**
   * Gives the channels of the stream, whatever the request asks for.
   * @defaultValue the channel that the route's pattern matches; the channels in `?channel=` when it matches none
   */
  channels?: ((...call: Call) => string | readonly string[] | Promise<string | readonly string[]>) | undefined
  /**
   * Whether `?channel=` may add channels to the one that the route's pattern matches. A guard of the route sees only the matched
   * channel, so allow more only where `authorize` judges all of them.
   * @defaultValue false
   */
  moreChannels?: boolean | undefined
}

export const defaultBudgetBytes = 64 * 1024

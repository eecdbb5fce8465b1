/** What one request may cost, and one publisher. */
export interface RequestLimits {
  /**
   * Channels of one stream or poll. More is rejected with 400.
   * @defaultValue 100, which is also the most
   */
  maxChannels?: number
  /**
   * Publish requests a second of one subject; of one address, for IPv6 one /64, where there are no subjects. What is over it gets 429, with
   * the time to wait in `Retry-After`. A batch counts once.
   * @defaultValue Infinity
   */
  maxPublishesPerSecond?: number
  /**
   * Publish requests that may come at once after a pause.
   * @defaultValue maxPublishesPerSecond
   */
  publishBurst?: number
  /**
   * Bytes of one publish. More is rejected with 413.
   * @defaultValue 262144, which is also the most
   */
  maxBodyBytes?: number
  /**
   * Until when the head of a request has to be there, in milliseconds, and over HTTP/2 until when a connection has to ask
   * for something. A connection of HTTP/1 waits as long for its next request, and 5 s at most. Shorter frees the connections
   * of attackers sooner, and cuts off clients on very slow connections.
   * @defaultValue 10000
   */
  headersTimeoutMs?: number
  /**
   * Until when a whole request has to be there, its body included, in milliseconds. Answers, streams above all, may take
   * as long as they like.
   * @defaultValue 30000
   */
  requestTimeoutMs?: number
  /**
   * Connections of one address, for IPv6 of one /64, that may be open for longer than a second without having sent a whole
   * request. The newest beyond that are closed. It goes by the address of the connection itself: raise it where a load balancer
   * brings all readers over TLS that it does not end.
   * @defaultValue 1000; no limit with `trustProxy`, because all connections are the proxy's then
   */
  maxSilentPerIp?: number
}

/** Why a request was rejected before the hub saw it. */
export type Rejection =
  | 'body'
  | 'channels'
  | 'connections'
  | 'deadline'
  | 'headers'
  | 'malformed'
  | 'pipelined'
  | 'probes'
  | 'publish-rate'
  | 'silent'
  | 'sockets'

/** Limits on one request, one connection and one publisher. */
export interface RequestLimits {
  /**
   * Channels of one stream or poll. A request for more is rejected with 400.
   * @defaultValue 100, which is also the most
   */
  maxChannels?: number | undefined
  /**
   * Publish requests per second of one subject. A publisher without a subject is counted by its address (for IPv6, its /64). A
   * request over the limit gets 429, with the time to wait in `Retry-After`. A batch counts once.
   * @defaultValue Infinity
   */
  maxPublishesPerSecond?: number | undefined
  /**
   * Publish requests that one publisher may send at once after a pause.
   * @defaultValue maxPublishesPerSecond
   */
  publishBurst?: number | undefined
  /**
   * Bytes in the body of one publish. A larger body is rejected with 413.
   * @defaultValue 262144, which is also the most
   */
  maxBodyBytes?: number | undefined
  /**
   * Milliseconds within which the head of a request has to arrive, and over HTTP/2 the first request of a connection. An HTTP/1
   * connection stays open as long for its next request, but 5 s at most. Shorter frees the connections of attackers sooner, and
   * cuts off clients on very slow networks.
   * @defaultValue 10000
   */
  headersTimeoutMs?: number | undefined
  /**
   * Milliseconds within which a whole request has to arrive, with its body. Answers and streams have no such limit.
   * @defaultValue 30000
   */
  requestTimeoutMs?: number | undefined
  /**
   * Connections of one address (for IPv6, one /64) that may stay open for over a second without having sent a whole request. The
   * newest beyond the limit are closed. The address is that of the connection itself: raise the limit behind a load balancer that
   * passes TLS through, because all readers then share its address.
   * @defaultValue 1000; no limit with `trustProxy`, because then all connections are the proxy's
   */
  maxSilentPerIp?: number | undefined
  /**
   * Open connections of one address (for IPv6, one /64), readers included. For one more, an idle connection of the address is
   * closed; if none is idle, the new one is. When connections run out for everybody, the idle ones of the address with most of them
   * are closed, unless this is Infinity. The address is that of the connection itself: raise the limit behind a load balancer that
   * passes TLS through, because all readers then share its address.
   * @defaultValue three quarters of the connections that the system allows; no limit with `trustProxy`, because then all connections are the
   * proxy's
   */
  maxSocketsPerIp?: number | undefined
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
  | 'resets'
  | 'silent'
  | 'sockets'

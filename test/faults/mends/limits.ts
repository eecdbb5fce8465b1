import type { Mend } from './mends.ts'

const http = 'hub/src/http'
const caughtIn = (project: 'unit' | 'long', file: string, test: string) => ({
  project,
  file: `packages/${file}`,
  test,
})

/** What bounds those who would stop a hub. The attacks of `npm run faults -- hostile` are the same, at full strength. */
export const limitMends: readonly Mend[] = [
  {
    name: 'waiting-requests-unbounded',
    mistake: 'keeps any number of requests behind a stream',
    patches: [
      { file: `${http}/pipelining.ts`, find: 'return waiting.size <= maxWaiting', replace: 'return maxWaiting > 0' },
    ],
    caughtBy: caughtIn('long', 'hub/test/http/adapters/node.test.ts', 'is cut when they come one by one'),
  },
  {
    name: 'answered-requests-uncounted',
    mistake: 'reads any number of requests in one turn, as long as none of them waits',
    patches: [{ file: `${http}/pipelining.ts`, find: 'return count <= maxPerTurn', replace: 'return maxPerTurn > 0' }],
    caughtBy: caughtIn(
      'long',
      'rejoin/test/limits/limits.test.ts',
      'hundreds that are answered as soon as they are read',
    ),
  },
  {
    name: 'own-routes-uncounted',
    mistake: "keeps any number of requests for an application's own routes behind a stream of the hub",
    patches: [
      {
        file: `${http}/pipelining.ts`,
        find: "  if (server && server.listenerCount('request') > 0) boundRequests(server)\n",
        replace: '',
      },
    ],
    caughtBy: caughtIn('long', 'hub/test/http/adapters/fastify.test.ts', 'is cut, whatever they are: GET /other'),
  },
  {
    name: 'reset-requests-served',
    mistake: 'serves HTTP/2 requests that are reset in the packet that opens them',
    patches: [
      {
        file: `${http}/later-turn.ts`,
        find: 'if (request.httpVersionMajor === 1 || seen.has(response)) {',
        replace: 'if (request.httpVersionMajor > 0) {',
      },
    ],
    caughtBy: caughtIn('unit', 'hub/test/http/adapters/http2.test.ts', 'requests that one packet opens and resets'),
  },
  {
    name: 'untaken-answers-unwatched',
    mistake: 'keeps what an HTTP/2 client with an empty window does not take',
    patches: [
      {
        file: `${http}/send.ts`,
        find: 'if (length <= shortBytes && !isHttp2 && response.socket?.writableLength === 0) {',
        replace: 'if (isHttp2 || response.socket?.writableLength === 0) {',
      },
    ],
    caughtBy: caughtIn('long', 'rejoin/test/http/tls.test.ts', 'that a client does not take are given up'),
  },
  {
    name: 'addresses-unbounded',
    mistake: 'lets one address have every connection',
    patches: [
      {
        file: 'rejoin/src/http/http-server.ts',
        find: 'limitSockets({ maxPerIp: maxSocketsPerIp, room,',
        replace: 'limitSockets({ maxPerIp: 1e9 + maxSocketsPerIp, room: 1e9 + room,',
      },
    ],
    caughtBy: caughtIn(
      'unit',
      'rejoin/test/limits/open-sockets.test.ts',
      'keeps asking for little over every connection',
    ),
  },
  {
    name: 'webhook-calls-unbounded',
    mistake: 'asks a webhook for every reader at the same time',
    patches: [
      {
        file: 'hub/src/hub/read/snapshot.ts',
        find: 'if (running.size >= maxRunning) break',
        replace: 'if (running.size >= 100 * maxRunning) break',
      },
    ],
    caughtBy: caughtIn('unit', 'rejoin/test/snapshots.test.ts', 'is asked over few connections'),
  },
  {
    name: 'small-chunks-apart',
    mistake: 'keeps each chunk of a body by itself',
    patches: [{ file: `${http}/body-parts.ts`, find: 'const maxNewest = 256', replace: 'const maxNewest = 1e9' }],
    caughtBy: caughtIn('unit', 'hub/test/http/body-parts.test.ts', 'a body in chunks of one byte'),
  },
  {
    name: 'unwanted-bodies-kept',
    mistake: 'leaves the body of a request for a stream unread',
    patches: [
      { file: `${http}/unwanted-body.ts`, find: 'if (!hasBody(request) ||', replace: 'if (hasBody(request) ||' },
    ],
    caughtBy: caughtIn('long', 'hub/test/http/adapters/node.test.ts', 'costs its connection when it comes in chunks'),
  },
  {
    name: 'neighbours-rejected',
    mistake: 'rejects readers for what a neighbour with the same cursor does',
    patches: [
      {
        file: 'hub/src/hub/readers/rapid-returns.ts',
        find: '      if (!request.client) return { delayMs: Math.min(longestDelayMs, waitMs) }\n',
        replace: '      void longestDelayMs\n',
      },
    ],
    caughtBy: caughtIn(
      'long',
      'hub/test/hub/readers/rapid-returns.test.ts',
      'behind the same address return in a loop',
    ),
  },
  {
    name: 'hosts-kept',
    mistake: 'keeps every host that an SRV record of one name has named',
    patches: [
      {
        file: 'mdns/src/records.ts',
        find: 'if (known.services === 0) hosts.delete(host)',
        replace: 'void known.services',
      },
    ],
    caughtBy: caughtIn('unit', 'mdns/test/browse.test.ts', 'a name whose SRV records name a new host in every packet'),
  },
  {
    name: 'one-key-of-several',
    mistake: 'rejects every token without kid while an issuer has two keys',
    patches: [
      {
        file: 'rejoin/src/access/jwt.ts',
        find: "if (codeOf(error) !== 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') throw error",
        replace: 'if (error) throw error',
      },
    ],
    caughtBy: caughtIn(
      'long',
      'rejoin/test/access/jwt.test.ts',
      'a token that names no key is good by any key of the set',
    ),
  },
]

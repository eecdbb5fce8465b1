import type { Socket } from 'node:net'
import type { Attack } from './attack.ts'
import { askOnce, get, keepDoing, keepOpen, openUnread, post } from './sockets.ts'

/** Everything a little: always some progress, so that no deadline for those who make none is met, and each limit nearly full. */
export const drips: readonly Attack[] = [
  {
    name: 'dripping readers',
    says: '500 streams with 16 MB to read each, read a kilobyte a second',
    run: (target, stop) =>
      keepOpen(target, 500, stop, () => sip(openUnread(target, get(`/events/${target.heavy}?lastEventId=earliest`)))),
  },
  {
    name: 'dripping polls',
    says: '100 polls of a megabyte each, read a kilobyte a second',
    run: (target, stop) =>
      keepOpen(target, 100, stop, () => sip(openUnread(target, get(`/poll/${target.heavy}?lastEventId=earliest`)))),
  },
  {
    name: 'dripping bodies',
    says: '200 publishes of its own of 254 KB, sent a kilobyte a second',
    run: (target, stop) =>
      keepOpen(target, 200, stop, () => {
        const headers = [`Authorization: Bearer ${target.key}`]
        const head = post('/publish/mallory/1', '', headers).replace('Content-Length: 0', 'Content-Length: 260000')
        return dripInto(openUnread(target, head))
      }),
  },
  {
    name: 'minted tickets',
    says: '10 at once: tickets of its own, one used and three not',
    run(target, stop) {
      const ask = post('/ticket', '', [`Authorization: Bearer ${target.key}`, 'Connection: close'])
      return keepDoing(target, 10, stop, async () => {
        const answers = [1, 2, 3, 4].map(() => askOnce(target, ask))
        const [ticket] = (await Promise.all(answers)).map((answer) => /"ticket":"([^"]+)"/.exec(answer)?.[1])
        await askOnce(target, get(`/events/orders/1?ticket=${ticket}`))
      })
    },
  },
]

/** Reads a kilobyte a second. What the system has taken for it is the system's, so its buffer has to be small. */
function sip(socket: Socket): Socket {
  return everySecond(socket, () => socket.read(1024))
}

function dripInto(socket: Socket): Socket {
  return everySecond(socket, () => socket.write('x'.repeat(1024)))
}

function everySecond(socket: Socket, task: () => void): Socket {
  const timer = setInterval(task, 1000)
  socket.once('close', () => clearInterval(timer))
  return socket
}

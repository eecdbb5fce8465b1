import type { Attack } from './attack.ts'
import { askOnce, get, keepDoing, keepOpen, openUnread } from './sockets.ts'

/** What takes the room that newcomers need. */
export const crowding: readonly Attack[] = [
  {
    name: 'held connections',
    says: '4,096 connections of one address, as many as there are, which ask for /healthz every four seconds',
    run: (target, stop) =>
      keepOpen(target, 4096, stop, () => {
        const socket = openUnread(target, get('/healthz')).resume()
        const timer = setInterval(() => socket.write(get('/healthz')), 4000)
        return socket.once('close', () => clearInterval(timer))
      }),
  },
  {
    name: 'shared cursors',
    says: '20 at once: a stream is opened and left, at the address and with the cursor of somebody else',
    run: (target, stop) =>
      keepDoing(target, 20, stop, () =>
        askOnce(target, get('/events/oldest', [`Last-Event-ID: ${target.oldId}`]), '127.0.0.1'),
      ),
  },
  {
    name: 'dropped polls',
    says: '50 at once: polls that need a snapshot of their own, dropped before the webhook has answered',
    run(target, stop) {
      let next = 0
      return keepDoing(target, 50, stop, () => {
        next += 1
        const socket = openUnread(target, get(`/poll/hooked/${next}?lastEventId=nonsense`))
        return new Promise((resolve) => {
          setTimeout(() => socket.resetAndDestroy(), 50)
          socket.once('close', resolve)
        })
      })
    },
  },
]

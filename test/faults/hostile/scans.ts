import type { Attack, Target } from './attack.ts'
import { askOnce, get, keepDoing } from './sockets.ts'

/** Requests that are short to write and long to answer. */
export const scans: readonly Attack[] = [
  {
    name: 'replay=N',
    says: '100 at once: the last 10,000 events of a channel, again and again',
    run: (target, stop) =>
      keepDoing(target, 100, stop, () => askOnce(target, get(`/events/${target.long}?replay=10000`))),
  },
  {
    name: 'replay=N of all',
    says: '20 at once: the last events of every channel there is',
    run: (target, stop) => keepDoing(target, 20, stop, () => askOnce(target, get('/events/*?replay=5'))),
  },
  {
    name: 'unknown ids',
    says: '100 at once: a wide pattern with an id that is none',
    run: (target, stop) => keepDoing(target, 100, stop, () => askOnce(target, wideWith(target, 'nonsense'))),
  },
  {
    name: 'old ids',
    says: '20 at once: a wide pattern from an id before everything',
    run: (target, stop) => keepDoing(target, 20, stop, () => askOnce(target, wideWith(target, target.oldId))),
  },
  {
    name: 'earliest of all',
    says: '20 at once: every channel from its earliest event',
    run: (target, stop) => keepDoing(target, 20, stop, () => askOnce(target, get('/events/*?lastEventId=earliest'))),
  },
  {
    name: 'long requests',
    says: '50 at once: 100 channels, filters, added channels, 8 KB of address',
    run(target, stop) {
      const channels = Array.from({ length: 100 }, (_, n) => `channel=wide/${n}&added=wide/${n}&type=t${n}`).join('&')
      return keepDoing(target, 50, stop, () => askOnce(target, get(`/events?${channels}&lastEventId=${target.oldId}`)))
    },
  },
]

function wideWith({ wide }: Target, id: string): string {
  return get(`/events/${wide}`, [`Last-Event-ID: ${id}`])
}

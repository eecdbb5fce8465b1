import type { Attack } from './attack.ts'
import { get, keepOpen, openUnread } from './sockets.ts'

/** Answers and streams that are asked for and never read: what waits for them is the hub's. */
export const unread: readonly Attack[] = [
  {
    name: 'unread polls',
    says: '5 connections, 900 pipelined polls of everything on each, never read',
    run: (target, stop) =>
      keepOpen(target, 5, stop, () =>
        openUnread(target, get(`/poll/${target.heavy}?lastEventId=earliest`).repeat(900)),
      ),
  },
  {
    name: 'unread streams',
    says: '20 connections, 900 pipelined streams on each, never read',
    run: (target, stop) =>
      keepOpen(target, 20, stop, () =>
        openUnread(target, get(`/events/${target.long}?lastEventId=earliest`).repeat(900)),
      ),
  },
  {
    name: 'stalled readers',
    says: '300 streams with 16 MB to read each, never read',
    run: (target, stop) =>
      keepOpen(target, 300, stop, () => openUnread(target, get(`/events/${target.heavy}?lastEventId=earliest`))),
  },
]

import type { IncomingMessage } from 'node:http'

/** The first segment of the path, by which the kinds of requests are told apart. */
export function doorOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  if (url[0] !== '/') return ''
  let end = 1
  while (end < url.length && url[end] !== '/' && url[end] !== '?') end += 1
  return url.slice(1, end)
}

/** Where the hub is read. */
export const readerDoors: ReadonlySet<string> = new Set(['events', 'stream', 'poll'])

/** Where events come in. To end a channel is to publish its last one. */
export const publisherDoors: ReadonlySet<string> = new Set(['publish', 'end'])

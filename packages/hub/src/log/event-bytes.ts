import type { NewEvent } from './contract.ts'

/** The size of an event in the window of its channel, and in a page: the bytes of its type and its data in UTF-8. */
export function eventBytes({ type, data }: Pick<NewEvent, 'type' | 'data'>): number {
  return Buffer.byteLength(type) + Buffer.byteLength(data)
}

/** The size of a retained event: like `eventBytes`, with the bytes of its key. */
export function retainedBytes(event: Pick<NewEvent, 'key' | 'type' | 'data'>): number {
  return Buffer.byteLength(event.key ?? '') + eventBytes(event)
}

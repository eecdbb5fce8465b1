import type { NewEvent } from './contract.ts'

/** What an event counts in the window of its channel, and in a page: the bytes of its type and its data in UTF-8. */
export function eventBytes({ type, data }: Pick<NewEvent, 'type' | 'data'>): number {
  return Buffer.byteLength(type) + Buffer.byteLength(data)
}

/** What an event counts in what its channel retains: its key as well. */
export function retainedBytes(event: Pick<NewEvent, 'key' | 'type' | 'data'>): number {
  return Buffer.byteLength(event.key ?? '') + eventBytes(event)
}

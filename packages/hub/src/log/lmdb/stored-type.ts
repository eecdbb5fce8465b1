import type { LogEvent } from '../contract.ts'

/**
 * The type of an event as it is stored: behind a tab when its data is text. No type holds a tab, and a record names each type
 * once, so that JSON costs nothing and text one byte. Records of earlier versions read the same way.
 */
export function storedTypeOf({ type, content }: Pick<LogEvent, 'type' | 'content'>): string {
  return content === undefined ? type : `\t${type}`
}

export function readStoredType(stored: string): StoredType {
  return stored.startsWith('\t') ? { type: stored.slice(1), content: 'text' } : { type: stored }
}

export interface StoredType {
  readonly type: string
  readonly content?: 'text'
}

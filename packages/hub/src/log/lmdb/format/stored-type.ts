import type { LogEvent } from '../../contract.ts'

/**
 * The type of an event as it is stored, with a tab in front when the data is text. No type contains a tab. A record names each
 * type once, so JSON costs nothing and text one byte. Records of earlier versions read the same way.
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

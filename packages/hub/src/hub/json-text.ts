/**
 * A JSON value as the text in which it was written. It stands where a value can stand. A parsed value would be written again, and its
 * numbers could change: 9007199254740993 would end in 2.
 */
export class JsonText {
  readonly text: string

  /** @param text - valid JSON */
  constructor(text: string) {
    this.text = text
  }
}

/** Undefined for a text that is not JSON. */
export function readJson(text: string): { readonly value: unknown } | undefined {
  // The first character tells for most texts. An exception costs ten times as much as the parse of a small value.
  if (!beginsLikeJson.test(text)) return undefined
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const beginsLikeJson = /^[ \t\n\r]*[[{"\-0-9tfn]/

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

/**
 * Text that somebody else chose, as it may stand in a line of ours: without what a terminal or a log viewer would obey,
 * line breaks and direction marks included, and no longer than `maxLength`.
 */
export function plainText(text: string, maxLength = 256): string {
  const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return shown.replaceAll(obeyed, '\ufffd').toWellFormed()
}

/** The same for text that is wanted whole, with its line breaks. Lines after the first are moved in by `indent`. */
export function plainLines(text: string, indent = ''): string {
  return text
    .split('\n')
    .map((line) => plainText(line, Number.POSITIVE_INFINITY))
    .join(`\n${indent}`)
}

/** Why something failed, with what was behind it: that the keys could not be read helps nobody who is not told why. */
export function causeText(cause: unknown): string {
  let text = String(cause)
  let inner = cause
  for (let depth = 0; depth < maxDepth && inner instanceof Error && inner.cause !== undefined; depth += 1) {
    inner = inner.cause
    const message = inner instanceof Error ? inner.message : String(inner)
    if (!text.includes(message)) text += `: ${message}`
  }
  return plainText(text, 1000)
}

// Of ours, of fetch, and of the system.
const maxDepth = 3

// C0, DEL and C1 (of which 0x9b begins an escape sequence), the separators that some viewers break lines at, and the marks
// that make a text read in another order than it is written.
const obeyed = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

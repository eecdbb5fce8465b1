/**
 * Makes text from a client safe for one line of output. Characters that a terminal or a log viewer would obey, such as line
 * breaks and direction marks, are replaced. Text over `maxLength` is cut.
 */
export function plainText(text: string, maxLength = 256): string {
  const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return shown.replaceAll(obeyed, '\ufffd').toWellFormed()
}

/** Like `plainText`, for text that keeps its length and its line breaks. Lines after the first begin with `indent`. */
export function plainLines(text: string, indent = ''): string {
  return text
    .split('\n')
    .map((line) => plainText(line, Number.POSITIVE_INFINITY))
    .join(`\n${indent}`)
}

/** The text of an error together with its causes: "the keys could not be read" helps only with the reason behind it. */
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

// One cause each from Rejoin, from fetch and from the system.
const maxDepth = 3

// C0, DEL and C1 (0x9b begins an escape sequence), the separators at which some viewers break lines, and the marks that change
// the reading direction.
const obeyed = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

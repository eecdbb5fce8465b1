/**
 * Text that somebody else chose, as it may stand in a line of ours: without what a terminal or a log viewer would obey,
 * line breaks and direction marks included, and no longer than `maxLength`.
 */
export function plainText(text: string, maxLength = 256): string {
  const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return shown.replaceAll(obeyed, '\ufffd').toWellFormed()
}

// C0, DEL and C1 (of which 0x9b begins an escape sequence), the separators that some viewers break lines at, and the marks
// that make a text read in another order than it is written.
const obeyed = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

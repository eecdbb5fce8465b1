/**
 * Data as a log keeps it (§5.4): LF line ends and well-formed Unicode, so that every transport and every reader gets the same
 * text. An event stream cannot carry a CR, and UTF-8 cannot carry half a surrogate pair.
 */
export function normaliseData(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\r') ? wellFormed.replace(/\r\n?/g, '\n') : wellFormed
}

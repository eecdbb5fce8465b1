/** A number with its word: "1 event", "2 events". */
export function counted(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

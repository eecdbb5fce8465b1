/**
 * JSON as one line that a terminal shows and does not obey. What is escaped can only stand inside of strings, where it means
 * the same; a line break only between the tokens, where it means nothing.
 */
export function jsonLine(json: string): string {
  return json.replaceAll(/[\n\r]/g, ' ').replaceAll(obeyed, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

// What `JSON.stringify` leaves as it is: DEL, C1, separators of lines, and marks that change the order of reading.
const obeyed = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

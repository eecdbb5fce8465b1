/**
 * JSON as one line without characters that a terminal would obey. The escaped characters occur only inside of strings, where the
 * escape means the same. Line breaks occur only between tokens, where a space means the same.
 */
export function jsonLine(json: string): string {
  return json.replaceAll(/[\n\r]/g, ' ').replaceAll(obeyed, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

// Characters that `JSON.stringify` does not escape: DEL, C1, line separators, and marks that change the reading direction.
const obeyed = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

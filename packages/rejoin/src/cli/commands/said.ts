/**
 * What the words on a command line are to readers: the JSON value that they are, as in a body that is posted (§5.1), else text.
 * A number that JavaScript cannot hold would become another one, so that such JSON stays the text that it was.
 */
export function saidBy(text: string): { readonly data: unknown } | { readonly text: string } {
  try {
    const data: unknown = JSON.parse(text)
    return keepsNumbers(text) ? { data } : { text }
  } catch {
    return { text }
  }
}

/** Up to 15 digits, every number is kept exactly. */
function keepsNumbers(json: string): boolean {
  const numbers = json.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[\d.]+(?:e[+-]?\d+)?/gi) ?? []
  return numbers.every((number) => number.replace(/e.*|\D/gi, '').length <= 15 && Number.isFinite(Number(number)))
}

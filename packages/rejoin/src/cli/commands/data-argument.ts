/**
 * The data that a text on the command line stands for: its JSON value, as in the body of a publish (§5.1), else the text itself.
 * JSON with a number that JavaScript cannot hold stays a text, because the number would change.
 */
export function parseDataArgument(text: string): { readonly data: unknown } | { readonly text: string } {
  try {
    const data: unknown = JSON.parse(text)
    return keepsNumbers(text) ? { data } : { text }
  } catch {
    return { text }
  }
}

/** Whether JavaScript keeps every number exactly: it does so up to 15 digits. */
function keepsNumbers(json: string): boolean {
  const numbers = json.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[\d.]+(?:e[+-]?\d+)?/gi) ?? []
  return numbers.every((number) => number.replace(/e.*|\D/gi, '').length <= 15 && Number.isFinite(Number(number)))
}

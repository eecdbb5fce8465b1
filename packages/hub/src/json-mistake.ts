/**
 * What is wrong in a text that `JSON.parse` did not take, and where. The engine quotes the text around some mistakes. The quote is
 * left out: the message is also written to the log, which holds no data of events.
 */
export function jsonMistake(error: unknown): string {
  const said =
    error instanceof Error ? error.message.replace(/, (?:\.{3})?".*is not valid JSON$| in JSON(?= at )/s, '') : ''
  return said === '' ? 'it cannot be read' : said.charAt(0).toLowerCase() + said.slice(1)
}

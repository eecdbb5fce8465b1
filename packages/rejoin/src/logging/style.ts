import { inspect } from 'node:util'

export type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'

/** A text in an ANSI style. Node's `styleText` would ask `process.stdout` whether to use colour; here the caller decides. */
export function styled(style: Style, text: string, colour: boolean): string {
  if (!colour) return text
  const [on, off] = inspect.colors[style] ?? []
  return `\u001b[${on}m${text}\u001b[${off}m`
}

import { inspect } from 'node:util'

export type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'

/** A text in a style of ANSI terminals. `styleText` of Node asks `process.stdout` whether colour is wanted; we are told. */
export function styled(style: Style, text: string, colour: boolean): string {
  if (!colour) return text
  const [on, off] = inspect.colors[style] ?? []
  return `\u001b[${on}m${text}\u001b[${off}m`
}

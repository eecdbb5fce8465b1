import { inspect } from 'node:util'

export type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'

/** Whether to use ANSI styles: only on a terminal whose user has not asked for plain text. */
export function hasColour(output: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  // An empty NO_COLOR counts as unset (no-color.org).
  return output.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
}

type Environment = Readonly<Record<string, string | undefined>>

/** A text in an ANSI style. Node's `styleText` would ask `process.stdout` whether to use colour; here the caller decides. */
export function styled(style: Style, text: string, colour: boolean): string {
  if (!colour) return text
  const [on, off] = inspect.colors[style] ?? []
  return `\u001b[${on}m${text}\u001b[${off}m`
}

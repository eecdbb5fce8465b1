import type { ProgramHost } from '../program-host.ts'

/** Whether to colour results: only on a terminal whose user has not asked for plain text. */
export function hasColour({ stdout, env }: Pick<ProgramHost, 'stdout' | 'env'>): boolean {
  // An empty NO_COLOR counts as unset (no-color.org).
  return stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
}

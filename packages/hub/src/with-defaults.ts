/** Options over their defaults. An option that is undefined counts as left out. */
export function withDefaults<Options extends object>(
  options: Options | undefined,
  defaults: Complete<Options>,
): Complete<Options> {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) }
}

/** All options, each with a value. `Required` would leave them `| undefined` under `exactOptionalPropertyTypes`. */
export type Complete<Options> = { [Name in keyof Options]-?: Exclude<Options[Name], undefined> }

import { parseArgs } from 'node:util'

/** Numbers given as `--name value`, over the defaults. `--json` belongs to the report. */
export function numbersFrom<Name extends string>(defaults: Readonly<Record<Name, number>>): Record<Name, number> {
  const names = Object.keys(defaults) as Name[]
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean' },
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
    },
  })
  const given = values as Readonly<Record<string, string | undefined>>
  return Object.fromEntries(names.map((name) => [name, positive(name, given[name], defaults[name])])) as Record<
    Name,
    number
  >
}

function positive(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} ${text}: give a number over 0`)
  return value
}

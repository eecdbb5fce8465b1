import type { Command } from 'commander'
import { flagOf, settings } from '../../config/settings.ts'

/** The flags that a command was given, by their names, such as `--port`, each with its values. */
export type GivenFlags = ReadonlyMap<string, readonly string[]>

export function givenFlags(command: Command): GivenFlags {
  const given = command.options.filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
  return new Map(given.map((option) => [option.long ?? '', valuesOf(command.getOptionValue(option.attributeName()))]))
}

/** The same flags, some with another value, as a user can type them for another attempt. */
export function flagWords(given: GivenFlags, changed: Readonly<Record<string, string>>): string {
  const flags = new Map([...given].map(([flag, values]) => [flag, values.map((value) => shownValue(flag, value))]))
  for (const [flag, value] of Object.entries(changed)) flags.set(flag, [value])
  return [...flags]
    .flatMap(([flag, values]) => (values.length === 0 ? [flag] : values.map((value) => `${flag} ${quoted(value)}`)))
    .join(' ')
}

function valuesOf(value: unknown): readonly string[] {
  if (typeof value === 'boolean') return []
  return Array.isArray(value) ? value.map(String) : [String(value)]
}

/** Hides a value that may hold a password: error messages often end up in the log of a supervisor. */
function shownValue(flag: string, value: string): string {
  const setting = settings.find((each) => `--${flagOf(each)}` === flag)
  return (setting?.shown?.(value) ?? value) === value ? value : '…'
}

function quoted(value: string): string {
  return /^[\w./:@%+,=…-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`
}

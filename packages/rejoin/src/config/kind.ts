import * as v from 'valibot'

/** The values that a setting takes: as JSON in the file, as text in flags and in the environment. */
export interface Kind {
  readonly schema: v.GenericSchema
  /** The allowed values in words: completes "Give …". */
  readonly allowed: string
  /** The name of the value in the help. Left out, the flag takes no value: its presence means true. */
  readonly argument?: string
  /** All words that the setting takes. The help lists them. */
  readonly choices?: readonly string[]
  /** Words that a shell offers for a setting that takes other texts, too. */
  readonly offered?: readonly string[]
  /** Whether a flag may be given several times. */
  readonly repeatable?: boolean
  /** The value that a text stands for. A text without a meaning is returned as it is, and the schema rejects it. */
  read(text: string): unknown
}

export function wholeNumber(from: number, to = Number.MAX_SAFE_INTEGER): Kind {
  const allowed =
    to === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${from}` : `a whole number from ${from} to ${to}`
  return {
    schema: v.pipe(v.number(), v.integer(), v.minValue(from), v.maxValue(to)),
    allowed,
    argument: 'number',
    read: readNumber,
  }
}

export function numberOr(word: string, from: number, to: number): Kind {
  const number = wholeNumber(from, to)
  return {
    ...number,
    schema: v.union([v.literal(word), number.schema]),
    allowed: `${number.allowed}, or "${word}"`,
  }
}

export function choice(...words: readonly string[]): Kind {
  return {
    schema: v.picklist(words),
    allowed: new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(words),
    argument: 'name',
    choices: words,
    read: (text) => text,
  }
}

export function words(argument: string, allowed: string, pattern = /./): Kind {
  return { schema: v.pipe(v.string(), v.regex(pattern)), allowed, argument, read: (text) => text }
}

export const yesOrNo: Kind = {
  schema: v.boolean(),
  allowed: 'true or false',
  read: (text) => ({ true: true, 1: true, false: false, 0: false })[text] ?? text,
}

/** A list. In text, commas separate its items; a flag is repeated for each item. */
export function listOf(argument: string, allowed: string): Kind {
  return {
    schema: v.array(v.pipe(v.string(), v.minLength(1))),
    allowed: `a list of ${allowed}`,
    argument,
    repeatable: true,
    read: (text) =>
      text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
  }
}

/** Objects without a shorter form: in text, they are JSON. */
export function json(schema: v.GenericSchema, allowed: string): Kind {
  return {
    schema,
    allowed,
    argument: 'json',
    read(text) {
      try {
        return JSON.parse(text)
      } catch {
        // Returns the text itself, which the schema rejects: the schema wants an object or a list.
        return text
      }
    },
  }
}

/** Does not use `Number(text)` alone, which reads '' as 0 and '0x10' as 16. */
function readNumber(text: string): unknown {
  return /^\d{1,16}$/.test(text) ? Number(text) : text
}

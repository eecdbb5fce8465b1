import * as v from 'valibot'
import { idFormatNames } from '../id-formats.ts'

/**
 * The bodies of the admin API; `openapi.json` describes them. Each message completes a sentence that begins with the name of the
 * field.
 */

const notText = 'has to be a string, and not an empty one.'
const text = v.pipe(v.string(notText), v.nonEmpty(notText))

// A bound, because a typing error could otherwise keep readers away for good.
const longestMs = 24 * 3_600_000

function ms(otherwise: number) {
  const notMs = `has to be a number of milliseconds, at most ${longestMs}.`
  const number = v.pipe(v.number(notMs), v.minValue(0, notMs), v.maxValue(longestMs, notMs))
  return v.optional(number, otherwise)
}

export const disconnectBody = v.pipe(
  v.object({ connection: v.optional(text), subject: v.optional(text) }),
  v.check(
    ({ connection, subject }) => (connection === undefined) !== (subject === undefined),
    'Name either a "connection" or a "subject".',
  ),
)

export const invalidateBody = v.object({ channel: text })

const notTime = 'has to be milliseconds since 1970.'

export const revokeBody = v.object({
  subject: text,
  jti: v.optional(v.pipe(v.string(notText), v.nonEmpty(notText))),
  until: v.optional(v.pipe(v.number(notTime), v.safeInteger(notTime))),
})

export const drainBody = v.object({
  withinMs: ms(5000),
  announceMs: ms(0),
})

export const maintenanceBody = v.object({
  on: v.boolean('has to be true or false.'),
  retryAfterMs: ms(60_000),
  withinMs: ms(5000),
})

const notVersion = 'has to be a whole number from 1 to 999.'

export const idsBody = v.object({
  format: v.optional(v.pipe(v.picklist(idFormatNames, `has to be one of ${idFormatNames.join(', ')}.`))),
  version: v.optional(
    v.pipe(v.number(notVersion), v.safeInteger(notVersion), v.minValue(1, notVersion), v.maxValue(999, notVersion)),
  ),
  dryRun: v.optional(v.boolean('has to be true or false.'), false),
})

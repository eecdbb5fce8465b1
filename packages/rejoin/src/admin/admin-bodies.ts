import * as v from 'valibot'
import { idFormatNames } from '../id-formats.ts'

/** The bodies of the admin API. Each message completes a sentence that begins with the name of the field. */

const notText = 'has to be a string, and not an empty one.'
const text = v.pipe(v.string(notText), v.nonEmpty(notText))

// A bound, because a typing error could otherwise keep readers away for good.
const longestMs = 24 * 3_600_000

function ms(otherwise: number, description: string) {
  const notMs = `has to be a number of milliseconds, at most ${longestMs}.`
  const number = v.pipe(v.number(notMs), v.minValue(0, notMs), v.maxValue(longestMs, notMs), v.description(description))
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
  jti: v.optional(
    v.pipe(
      v.string(notText),
      v.nonEmpty(notText),
      v.description(
        'Rejects only the token with this `jti`. All streams of the subject are closed; readers with other tokens may return.',
      ),
    ),
  ),
  until: v.optional(
    v.pipe(
      v.number(notTime),
      v.safeInteger(notTime),
      v.description('When the hub may forget the revocation, in ms since 1970. Give the `exp` of the revoked token.'),
    ),
  ),
})

export const drainBody = v.object({
  withinMs: ms(5000, 'The time over which the streams are closed, one after the other.'),
  announceMs: ms(0, 'How long before the first close readers are told to wait longer before they return.'),
})

export const maintenanceBody = v.object({
  on: v.boolean('has to be true or false.'),
  retryAfterMs: ms(60_000, 'How long readers are told to wait before they try again.'),
  withinMs: ms(5000, 'The time over which the streams are closed, one after the other.'),
})

const notVersion = 'has to be a whole number from 1 to 999.'

export const idsBody = v.object({
  format: v.optional(
    v.pipe(
      v.picklist(idFormatNames, `has to be one of ${idFormatNames.join(', ')}.`),
      v.description('The format of new ids. Without it, the format stays and only `version` changes.'),
    ),
  ),
  version: v.optional(
    v.pipe(
      v.number(notVersion),
      v.safeInteger(notVersion),
      v.minValue(1, notVersion),
      v.maxValue(999, notVersion),
      v.description('The version in front of every new id: `v<version>_`. Without it, ids have no prefix.'),
    ),
  ),
  dryRun: v.optional(
    v.pipe(v.boolean('has to be true or false.'), v.description('Answers with the change, and does not make it.')),
    false,
  ),
})

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
      v.description('Only the token with this `jti`. The other streams of the subject end as well, and may come back.'),
    ),
  ),
  until: v.optional(
    v.pipe(
      v.number(notTime),
      v.safeInteger(notTime),
      v.description('When the revocation may be forgotten, ms since 1970: the `exp` of the revoked token.'),
    ),
  ),
})

export const drainBody = v.object({
  withinMs: ms(5000, 'Over how long the ends of the streams are spread.'),
  announceMs: ms(0, 'For how long before that readers are told a longer time to stay away.'),
})

export const maintenanceBody = v.object({
  on: v.boolean('has to be true or false.'),
  retryAfterMs: ms(60_000, 'When readers are to try again.'),
  withinMs: ms(5000, 'Over how long the ends of the streams are spread.'),
})

const notVersion = 'has to be a whole number from 1 to 999.'

export const idsBody = v.object({
  format: v.optional(
    v.pipe(
      v.picklist(idFormatNames, `has to be one of ${idFormatNames.join(', ')}.`),
      v.description('How ids are written from now on. Left out: as before, with another `version`.'),
    ),
  ),
  version: v.optional(
    v.pipe(
      v.number(notVersion),
      v.safeInteger(notVersion),
      v.minValue(1, notVersion),
      v.maxValue(999, notVersion),
      v.description('Stands in front of every id as `v<version>_`. Left out: there is no prefix.'),
    ),
  ),
  dryRun: v.optional(v.pipe(v.boolean('has to be true or false.'), v.description('Says what would be done.')), false),
})

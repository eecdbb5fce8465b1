import { jsonOf, newToken, openProbe, probePath, streamRequest, type Way } from '../probe-client.ts'
import { hubRemedy, remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'
import type { Answer } from '../wire.ts'

const name = 'cors'
const allowOrigin = 'access-control-allow-origin'

/** Whether pages of an origin may read the stream, and may resume it with `Last-Event-ID`. */
export async function corsCheck(way: Way, server: Server, origin: string): Promise<Check> {
  const probe = await openProbe(way, 'spaced', { headers: { origin }, statuses: [401, 403] })
  const hello = await probe.hello()
  probe.answer.close()
  const allowed = probe.answer.headers.get(allowOrigin)
  // A browser accepts one value only: two values are as bad as none.
  if (!isAllowed(allowed, origin)) {
    const sent = hello?.sent[allowOrigin]
    const byHub = hello === undefined || !isAllowed(sent, origin)
    const summary =
      allowed === undefined ? `pages of ${origin} are not allowed` : `pages of ${origin} get ${JSON.stringify(allowed)}`
    return {
      name,
      state: 'fault',
      summary,
      remedy: byHub ? corsOfHub(origin, await isWithoutRules(way, origin)) : remedyFor(name, server),
    }
  }
  const preflight = await askFirst(way, origin)
  if (isAnswered(preflight, origin)) return { name, state: 'good', summary: `pages of ${origin} may read and resume` }
  const summary = `the preflight of pages of ${origin} is answered with ${preflight.status}, and without what it needs`
  return { name, state: 'fault', summary, remedy: remedyFor(name, server) }
}

/** Whether the hub has no access rules. Such a hub would not start with `--cors-origin` alone. */
async function isWithoutRules(way: Way, origin: string): Promise<boolean> {
  const address = new URL(`${way.base}${probePath('spaced', newToken())}`)
  const answer = await way.wire.open(address, { headers: { ...streamRequest, ...way.headers, origin } })
  if (answer.status === 403) {
    const { error } = Object(await jsonOf(answer)) as { error?: { message?: unknown } }
    return /It has no access rules/.test(String(error?.message))
  }
  answer.close()
  return false
}

/** Sends the preflight that a browser sends before a fetch with a cursor. */
async function askFirst(way: Way, origin: string): Promise<Answer> {
  const answer = await way.wire.open(new URL(`${way.base}${probePath('spaced', newToken())}`), {
    method: 'OPTIONS',
    headers: {
      'user-agent': streamRequest['user-agent'],
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'last-event-id',
    },
  })
  answer.close()
  return answer
}

export function isAllowed(value: string | undefined, origin: string): boolean {
  return value === origin || value === '*'
}

function isAnswered({ status, headers }: Answer, origin: string): boolean {
  const names =
    headers
      .get('access-control-allow-headers')
      ?.toLowerCase()
      .split(/\s*,\s*/) ?? []
  const isGood = status >= 200 && status < 300 && isAllowed(headers.get(allowOrigin), origin)
  return isGood && (names.includes('last-event-id') || names.includes('*'))
}

export function corsOfHub(origin: string, withoutRules = false): ReturnType<typeof hubRemedy> {
  const rules = ["--access-anonymous-subscribe '*'   (everybody may read; or set access.jwt, and readers need a token)"]
  const lines = [`--cors-origin ${origin}`, ...(withoutRules ? rules : [])]
  return hubRemedy('Pages of this origin cannot read the stream at all.', lines)
}

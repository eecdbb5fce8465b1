import type { FaultyNetwork } from '@rejoin/hub/internal'
import { invalidData } from '../errors.ts'
import type { Call, Result, Route } from '../http/routes.ts'

/** The routes by which a test orders troubles. Each answers once its trouble has begun; only `restart` answers before. */
export function chaosRoutes(orders: Orders): Route[] {
  const answer = (status = 200): Result => ({ status, body: { starts: orders.starts() } })
  const post = (verb: string, order: (query: URLSearchParams) => Result | Promise<Result>): Route => ({
    method: 'POST',
    path: `/chaos/${verb}`,
    open: 'to-all',
    handle: ({ query }: Call) => order(query),
  })

  return [
    { method: 'GET', path: '/chaos', open: 'to-all', handle: () => answer() },
    post('cut', (query) => {
      orders.cut(query.has('forMs') ? numberIn(query, 'forMs') : Number.POSITIVE_INFINITY)
      return answer()
    }),
    post('heal', () => {
      orders.heal()
      return answer()
    }),
    post('slow', (query) => {
      orders.slow(numberIn(query, 'bytesPerSecond'))
      return answer()
    }),
    post('expire', (query) => {
      orders.expire(choiceIn(query, 'what', ['events', 'token']))
      return answer()
    }),
    post('revoke', async (query) => {
      await orders.revoke(query.get('subject') ?? undefined)
      return answer()
    }),
    post('restart', (query) => {
      const events = choiceIn(query, 'events', ['kept', 'lost'])
      // The restart begins after the answer, because it waits for open requests.
      setImmediate(() => orders.restart(events))
      return answer(202)
    }),
  ]
}

/** The troubles that a test can order. */
export interface Orders extends Pick<FaultyNetwork, 'cut' | 'heal' | 'slow'> {
  /** How often the program has been started. */
  starts(): number
  expire(what: 'events' | 'token'): void
  revoke(subject: string | undefined): Promise<void>
  restart(events: 'kept' | 'lost'): void
}

// One day: longer than any test, and short enough for a timer.
const most = 86_400_000

function numberIn(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? ''
  const number = Number(text)
  if (/^\d+$/.test(text) && number <= most) return number
  throw invalidData(`Say ?${name}= with a whole number from 0 to ${most}.`)
}

/** The choice in the query; the first choice when the query has none. */
function choiceIn<Choice extends string>(query: URLSearchParams, name: string, choices: [Choice, Choice]): Choice {
  const text = query.get(name) ?? choices[0]
  const choice = choices.find((each) => each === text)
  if (choice) return choice
  throw invalidData(`Say ?${name}=${choices[0]} or ?${name}=${choices[1]}.`)
}

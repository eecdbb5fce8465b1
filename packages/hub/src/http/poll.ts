import type { Hub } from '../hub/hub.ts'
import type { PollOptions } from '../hub/pull/poll.ts'
import type { SubscribeRequest } from '../hub/readers/subscribe-request.ts'
import { type Answer, jsonAnswer, readerRejection } from './answer.ts'
import type { Target } from './target.ts'

/** Answers a poll (§4.14). A rejected poll always gets a status: no `EventSource` polls, and other clients can read a status. */
export async function answerPoll(
  hub: Hub,
  request: SubscribeRequest,
  { query }: Target,
  poller: Poller,
): Promise<Answer> {
  const answer = await hub.port.poll(request, { ...readWait(query.get('waitMs')), ...poller })
  if ('reason' in answer) return readerRejection(answer)
  return jsonAnswer(200, answer, { Vary: 'Last-Event-ID, Authorization, Cookie, Origin' })
}

/** Whether a request to the address of a stream asks for a poll. A request below `/poll` needs no `waitMs`. */
export function isPoll(target: Target): boolean {
  return target.mayHave('waitMs') && target.query.has('waitMs')
}

/** Whether a rejected reader can read a status. A native `EventSource` cannot: it returns after no status but 200 (§4.12). */
export function readsStatus(target: Target): boolean {
  return target.endpoint === 'poll' || isPoll(target) || target.query.get('reject') === 'status'
}

/** The facts that an adapter knows of a poll: when its sender has gone, and which connection carries its answers. */
export type Poller = Pick<PollOptions, 'signal' | 'connection'>

function readWait(text: string | null): { waitMs?: number } {
  return text !== null && /^[0-9]{1,9}$/.test(text) ? { waitMs: Number(text) } : {}
}

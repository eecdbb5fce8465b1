import type { Hub, SubscribeRequest } from '../hub/hub.ts'
import type { PollOptions } from '../hub/pull/poll.ts'
import { type Answer, jsonAnswer, readerRejection } from './answer.ts'
import type { Target } from './target.ts'

/**
 * Answers a poll (§4.14). One that is rejected gets a status whether or not it asked for it: no `EventSource` reads
 * this, and whatever does can read that.
 */
export async function answerPoll(
  hub: Hub,
  request: SubscribeRequest,
  { query }: Target,
  poller: Poller,
): Promise<Answer> {
  const answer = await hub.poll(request, { ...readWait(query.get('waitMs')), ...poller })
  if ('reason' in answer) return readerRejection(answer)
  return jsonAnswer(200, answer, { Vary: 'Last-Event-ID, Authorization, Cookie, Origin' })
}

/** The requester of a poll, as far as its adapter knows: when it has gone, and what carries its answers. */
export type Poller = Pick<PollOptions, 'signal' | 'connection'>

function readWait(text: string | null): { waitMs?: number } {
  return text !== null && /^[0-9]{1,9}$/.test(text) ? { waitMs: Number(text) } : {}
}

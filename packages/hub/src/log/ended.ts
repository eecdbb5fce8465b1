import { isAfter, type Position, RejoinError } from '@rejoin/protocol'
import type { Window } from './contract.ts'

/** For a publish to a channel that has ended. */
export function channelEnded(channel: string): RejoinError {
  return new RejoinError(`${channel} has ended. Publish to a new channel, such as ${channel}-2.`, {
    code: 'channel-ended',
  })
}

/** What the window of a channel that has ended says about it. */
export function endedWindow(ended: Position, invalidatedThrough: Position): Pick<Window, 'ended' | 'deleted'> {
  return isAfter(invalidatedThrough, ended) ? { ended, deleted: true } : { ended }
}

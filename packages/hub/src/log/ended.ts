import { isAfter, type Position, RejoinError } from '@rejoin/protocol'
import type { Window } from './contract.ts'

/** The rejection of a publish to a channel that has ended. */
export function channelEnded(channel: string): RejoinError {
  return new RejoinError(`${channel} has ended. Publish to a new channel, such as ${channel}-2.`, {
    code: 'channel-ended',
  })
}

/** The part of a window that tells of the channel's end. */
export function endedWindow(ended: Position, invalidatedThrough: Position): Pick<Window, 'ended' | 'deleted'> {
  return isAfter(invalidatedThrough, ended) ? { ended, deleted: true } : { ended }
}

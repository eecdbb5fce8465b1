import { RejoinError } from '@rejoin/protocol'

/** For a publish to a channel that has ended. */
export function channelEnded(channel: string): RejoinError {
  return new RejoinError(`${channel} has ended. Publish to a new channel, such as ${channel}-2.`, {
    code: 'channel-ended',
  })
}

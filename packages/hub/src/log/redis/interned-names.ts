import { origin, type Position } from '@rejoin/protocol'

/**
 * Channels, types and positions of earlier entries of the feed, for later entries to share. A hub holds events for a while, and
 * the garbage collector moves every string and object of theirs. So a name that an earlier event has is not made again.
 */
export interface InternedNames {
  channel(name: string): InternedChannel
  /** The type in `text` from `start` to `end`. */
  type(text: string, start: number, end: number): string
}

export interface InternedChannel {
  readonly channel: string
  /** The id and the position of the channel's newest entry, which the next entry mostly names as `previous`. */
  id: string
  position: Position
}

// With more channels than these, the next event is seldom of a recent channel. A log has few types.
const most = { channels: 4096, types: 256 }

export function createInternedNames(): InternedNames {
  const channels = new Map<string, InternedChannel>()
  const types = new Map<string, string>()
  let lastType = ''

  return {
    channel(name) {
      const known = channels.get(name)
      if (known) return known
      if (channels.size >= most.channels) channels.clear()
      const channel = copyOf(name)
      const first = { channel, id: '', position: origin }
      channels.set(channel, first)
      return first
    },
    type(text, start, end) {
      if (end - start === lastType.length && text.startsWith(lastType, start)) return lastType
      const type = text.slice(start, end)
      const known = types.get(type)
      if (known === undefined) {
        if (types.size >= most.types) types.clear()
        lastType = copyOf(type)
        types.set(lastType, lastType)
      } else {
        lastType = known
      }
      return lastType
    },
  }
}

/** A slice of an entry would keep the whole entry in memory, so names are copied. */
function copyOf(name: string): string {
  return Buffer.from(name).toString()
}

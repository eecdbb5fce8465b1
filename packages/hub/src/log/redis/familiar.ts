import { origin, type Position } from '@rejoin/protocol'

/**
 * What earlier entries of a feed said already. A hub holds on to events for a while, and the engine's collector moves all that
 * it finds of them: names and places that an earlier one has as well are not made again.
 */
export interface Familiar {
  channel(name: string): FamiliarChannel
  /** The one that stands there. */
  type(text: string, start: number, end: number): string
}

export interface FamiliarChannel {
  readonly channel: string
  /** Of its newest entry, which the next one mostly names as the one before it. */
  id: string
  position: Position
}

// Of more channels than that, the next event is seldom of one that came lately. Of types there are few.
const most = { channels: 4096, types: 256 }

export function createFamiliar(): Familiar {
  const channels = new Map<string, FamiliarChannel>()
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

/** A name that was cut out of an entry would keep all of it. */
function copyOf(name: string): string {
  return Buffer.from(name).toString()
}

import { checkChannel, checkType, covers, isReservedType, normaliseData, RejoinError } from '@rejoin/protocol'
import type { NewEvent } from '../../log/contract.ts'
import { JsonText } from '../json-text.ts'

/** A JSON value, or text that is sent as it is. */
export type Message = MessageOptions & {
  /**
   * The name under which readers listen for the event.
   * @defaultValue 'message', which a plain `EventSource` gives to `onmessage`
   */
  readonly type?: string
} & ({ readonly data: unknown; readonly text?: never } | { readonly text: string; readonly data?: never })

export interface MessageOptions {
  /**
   * Names a value, in a channel that retains its newest values. The event is kept until another event with the same key comes,
   * and given to readers that have lost their position.
   * @defaultValue '', the channel's one value
   */
  readonly key?: string | undefined
  /** Forgets the value that is retained under the key. Readers that are here get this event, and see that the value is gone. */
  readonly forget?: boolean | undefined
  /**
   * Only for readers that are here now: the event is not kept, and a reader that was away does not miss it. For telemetry,
   * typing.
   */
  readonly live?: boolean | undefined
}

/**
 * Checks a message and puts it into the form in which a log keeps it. Throws before anything is appended.
 *
 * @param retain - the channels and patterns that retain their newest values
 */
export function toNewEvent(channel: string, message: Message, retain: readonly string[] = []): NewEvent {
  if (channel !== lastChannel) lastChannel = checkChannel(channel)
  const type = checkedType(message.type)
  const data = normaliseData(textOf(message))
  const isText = message.data === undefined
  // Two literals, here and wherever events are made in numbers: a spread makes an object that V8 reads slowly for as long as it
  // lives. With `{ ...event, content }` a publish of text took 17 µs instead of 10 (`hub.publish` on LMDB, Node 20).
  const event: NewEvent = isText
    ? { channel: lastChannel, type, data, content: 'text' }
    : { channel: lastChannel, type, data }
  if (message.live) return liveEvent(event, message)
  if (retain.length === 0 && message.key === undefined && !message.forget) return event
  return retainedEvent(event, message, retain)
}

function liveEvent(event: NewEvent, { key, forget }: Message): NewEvent {
  if (key === undefined && !forget) return { ...event, live: true }
  throw new RejoinError('An event is either live, and not kept at all, or has a key. Leave out one of them.', {
    code: 'invalid-event',
  })
}

function retainedEvent(event: NewEvent, { key = '', forget = false }: Message, retain: readonly string[]): NewEvent {
  if (!retain.some((name) => covers(name, event.channel))) {
    if (key === '' && !forget) return event
    throw new RejoinError(
      `${event.channel} retains nothing, so it has no use for a key. Add it to the hub's \`retain\`.`,
      {
        code: 'invalid-event',
      },
    )
  }
  if (!key.isWellFormed() || Buffer.byteLength(key) > maxKeyBytes) {
    throw new RejoinError(`A key is at most ${maxKeyBytes} bytes of valid Unicode. Name it like EUR-USD.`, {
      code: 'invalid-event',
    })
  }
  return forget ? { ...event, key, forget } : { ...event, key }
}

const maxKeyBytes = 256

// Most events of a batch have one channel and one type, so these need not be checked again.
let lastChannel: string | undefined
let lastType: string | undefined

function checkedType(type: string | undefined): string {
  if (type === undefined) return 'message'
  if (type === lastType) return type
  const checked = checkType(type)
  if (isReservedType(checked)) {
    throw new RejoinError(`The type ${JSON.stringify(checked)} belongs to the protocol. Choose another name.`, {
      code: 'invalid-type',
    })
  }
  lastType = checked
  return checked
}

function textOf(message: Message): string {
  if (typeof message.text === 'string') return message.text
  if (message.data instanceof JsonText) return message.data.text
  let text: string | undefined
  try {
    text = JSON.stringify(message.data)
  } catch (cause) {
    throw new RejoinError(
      'The data cannot be written as JSON: it is circular, too deep, or holds a BigInt. Publish a BigInt as a string, and an id in place of an object that refers back.',
      { code: 'invalid-data', cause },
    )
  }
  if (text === undefined) {
    throw new RejoinError(
      'The event has neither data nor text. Give `data` a JSON value, null included, or `text` a string.',
      {
        code: 'invalid-data',
      },
    )
  }
  return text
}

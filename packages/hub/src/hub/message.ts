import { checkChannel, checkType, isReservedType, normaliseData, RejoinError } from '@rejoin/protocol'
import type { NewEvent } from '../log/contract.ts'

/** What a publisher says: a JSON value, or text that is sent as it is. */
export type Message = {
  /**
   * The name under which readers listen for it.
   * @defaultValue 'message', what a plain `EventSource` hands to `onmessage`
   */
  readonly type?: string
} & ({ readonly data: unknown; readonly text?: never } | { readonly text: string; readonly data?: never })

/** Checks a message and puts it into the form in which a log keeps it. Throws before anything is appended. */
export function toNewEvent(channel: string, message: Message): NewEvent {
  if (channel !== lastChannel) lastChannel = checkChannel(channel)
  return { channel: lastChannel, type: checkedType(message.type), data: normaliseData(textOf(message)) }
}

// Of the events of a batch, most are of one channel and one type.
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
  let text: string | undefined
  try {
    text = JSON.stringify(message.data)
  } catch (cause) {
    throw new RejoinError('The data cannot be written as JSON: it is circular, too deep, or holds a BigInt.', {
      code: 'invalid-data',
      cause,
    })
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

import { inspect } from 'node:util'
import type { StreamEvent, SyncRequired } from '@rejoin/client'
import { plainText } from '../announce/plain-text.ts'
import { jsonLine } from '../output/json-line.ts'

/** An event as it was published. */
export interface TailedEvent {
  readonly id: string
  readonly channel: string
  readonly type: string
  readonly text: string
  readonly isJson: boolean
}

export interface TailStyle {
  readonly json: boolean
  readonly showChannel: boolean
  readonly colour: boolean
}

/** Takes an event out of its envelope (§4.15). Data that is JSON keeps its own text: numbers may be larger than ours. */
export function readTailed({ id, type, data }: StreamEvent): TailedEvent {
  const envelope = String(data)
  const { channel, text } = JSON.parse(envelope) as { channel: string; text?: string }
  if (text !== undefined) return { id, channel, type, text, isJson: false }
  const head = `{"id":${JSON.stringify(id)},"channel":${JSON.stringify(channel)},"data":`
  return { id, channel, type, text: envelope.slice(head.length, -1), isJson: true }
}

export function eventLine({ id, channel, type, text, isJson }: TailedEvent, style: TailStyle): string {
  if (style.json) {
    const said = isJson ? `"data":${text}` : `"text":${JSON.stringify(text)}`
    const names = { id, channel, type }
    return jsonLine(`${JSON.stringify(names).slice(0, -1)},${said}}`)
  }
  const where = style.showChannel ? [painted('cyan', plainText(channel), style)] : []
  const words = [painted('dim', id, style), ...where, painted('bold', plainText(type), style), shown(text)]
  return words.filter((word) => word !== '').join('  ')
}

/** For a person, or, as JSON, with the type that no event can have. */
export function gapLine(gap: SyncRequired, style: TailStyle): string {
  if (style.json) return jsonLine(JSON.stringify({ type: 'sync-required', ...gap }))
  const channels = gap.channels.map((channel) => plainText(channel)).join(', ')
  return `rejoin: events of ${channels} are gone (${gap.reason}). What follows is whole from ${gap.latest} on.`
}

/** Every line without what a terminal obeys; those after the first are moved in, so that none of them looks like an event. */
function shown(text: string): string {
  return text
    .split('\n')
    .map((line) => plainText(line, Number.POSITIVE_INFINITY))
    .join('\n  ')
}

function painted(style: 'bold' | 'cyan' | 'dim', text: string, { colour }: TailStyle): string {
  const [on, off] = inspect.colors[style] ?? []
  return colour ? `\u001b[${on}m${text}\u001b[${off}m` : text
}

import type { StreamEvent, SyncRequired } from '@rejoin/client'
import { plainLines, plainText } from '@rejoin/hub/internal'
import { styled } from '../../logging/style.ts'
import { jsonLine } from '../output.ts'

export interface TailStyle {
  readonly json: boolean
  readonly showChannel: boolean
  readonly colour: boolean
}

export function eventLine({ id, channel = '', type, data, content }: StreamEvent, style: TailStyle): string {
  const text = String(data)
  if (style.json) {
    // JSON data is printed as it was sent: JavaScript cannot hold every number.
    const said = !content && isJson(text) ? `"data":${text}` : `"text":${JSON.stringify(text)}`
    return jsonLine(`${JSON.stringify({ id, channel, type }).slice(0, -1)},${said}}`)
  }
  const where = style.showChannel ? [styled('cyan', plainText(channel), style.colour)] : []
  // Lines after the first are indented, so that none of them looks like an event.
  const words = [
    styled('dim', plainLines(id), style.colour),
    ...where,
    styled('bold', plainText(type), style.colour),
    plainLines(text, '  '),
  ]
  return words.filter((word) => word !== '').join('  ')
}

/** A gap as a line: words for a person, or JSON with a type that no event can have. */
export function gapLine(gap: Omit<SyncRequired, 'retained'>, style: TailStyle): string {
  if (style.json) return jsonLine(JSON.stringify({ type: 'sync-required', ...gap }))
  const channels = gap.channels.map((channel) => plainText(channel)).join(', ')
  return plainLines(
    `rejoin: events of ${channels} are gone (${gap.reason}). What follows is whole from ${gap.latest} on.`,
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // Not JSON, so it is printed as text.
    return false
  }
}

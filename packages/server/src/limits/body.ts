import type { IncomingMessage } from 'node:http'

/**
 * Reads a body whose length was not said beforehand, and leaves it on the request, where the hub looks for it. `over` when
 * it is more than that many bytes, `gone` when its sender left in the middle of it.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<'read' | 'over' | 'gone'> {
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let length = 0
    request.on('data', (part: Buffer) => {
      length += part.length
      if (length <= maxBytes) parts.push(part)
      else resolve('over')
    })
    request.once('end', () => {
      Object.assign(request, { body: Buffer.concat(parts) })
      resolve('read')
    })
    request.once('error', () => resolve('gone'))
    request.once('close', () => resolve('gone'))
  })
}

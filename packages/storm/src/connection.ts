import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createResponse, type ResponseHead } from './response.ts'

/** One request for a stream, on a raw socket of its own. An HTTP client would cost more than the hub that is measured. */
export interface Connection {
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Breaks the connection, as a broken network does. No event is called any more. */
  cut(): void
}

export interface ConnectionEvents {
  onHead(head: ResponseHead): void
  onBody(text: string): void
  /** Called when the connection is over, but not after `cut`. Without an error, the server ended the answer or broke it off. */
  onEnd(error?: Error): void
}

export function openConnection(
  url: URL,
  headers: Readonly<Record<string, string>>,
  events: ConnectionEvents,
): Connection {
  let over = false

  function end(error?: Error): void {
    if (over) return
    over = true
    socket.destroy()
    events.onEnd(error)
  }

  const response = createResponse(events)
  const onread = {
    buffer: sharedBuffer,
    callback(length: number): boolean {
      if (over) return false
      try {
        response.feed(sharedBuffer.toString('latin1', 0, length))
      } catch (error) {
        end(error as Error)
      }
      if (response.isWhole) end()
      return !over
    },
  }
  const socket = connectTo(url, onread)
  socket.on('error', end)
  socket.on('close', () => end())
  // latin1, because the cursor was read as latin1: each byte stays the same.
  socket.write(requestText(url, headers), 'latin1')
  return {
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    cut() {
      over = true
      socket.destroy()
    },
  }
}

// All sockets share this buffer: each piece is parsed before the next one is read.
const sharedBuffer = Buffer.alloc(64 * 1024)

function connectTo(url: URL, onread: { buffer: Buffer; callback(length: number): boolean }): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isTls = url.protocol === 'https:'
  const address = { host, port: Number(url.port || (isTls ? 443 : 80)), onread }
  if (!isTls) return connectTcp(address)
  // An IP address is no server name: TLS chooses certificates by host names only.
  const servername = /^[\d.]+$|:/.test(host) ? '' : host
  return connectTls({ ...address, servername, ALPNProtocols: ['http/1.1'] })
}

function requestText(url: URL, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n${lines.join('')}\r\n`
}

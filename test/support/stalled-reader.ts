import { connect, type Socket } from 'node:net'
import { createParser } from '@rejoin/protocol'

/** So many of `largeData` are more than any kernel buffers for one socket. */
export const largeEvents = 600

const filler = 'x'.repeat(32 * 1024)

/** The data of the nth of them. */
export function largeData(n: number): { readonly n: number; readonly filler: string } {
  return { n, filler }
}

/** Connected, and does not read. Without chunks, so that its bytes can be told apart. */
export function openStalledReader(port: number, path: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  socket.write(`GET ${path} HTTP/1.0\r\nHost: x\r\n\r\n`)
  return socket.pause()
}

/** Reads on until all the large events are there, and gives their numbers. */
export function numbersRead(socket: Socket): Promise<number[]> {
  const numbers: number[] = []
  return new Promise((resolve) => {
    const parser = createParser({
      onEvent({ type, data }) {
        if (type === 'message') numbers.push(JSON.parse(data).n)
      },
    })
    let inBody = false
    let head = ''
    socket.setEncoding('utf8').on('data', (part: string) => {
      if (inBody) parser.feed(part)
      else {
        head += part
        const end = head.indexOf('\r\n\r\n')
        inBody = end !== -1
        if (inBody) parser.feed(head.slice(end + 4))
      }
      if (numbers.length >= largeEvents) resolve(numbers)
    })
    socket.resume()
  })
}

import { connect } from 'node:net'
import { nowMicros, stampedEvent } from '../traffic/event.ts'
import { keepPace } from '../traffic/pace.ts'

export interface HttpPublishing {
  readonly port: number
  /** Takes a POST whose body is the event. */
  readonly path: string
  readonly perSecond: number
  readonly eventBytes: number
  /** What the event tells: when it was due, or when it was handed to the socket. */
  readonly stamp: 'due' | 'sent'
}

// Requests that may wait for their answers. More would only queue up in front of a server that is behind.
const maxWaiting = 32

/** Publishes over one connection that is kept alive, without waiting for an answer before the next request. */
export function publishOverHttp(publishing: HttpPublishing): { stop(): void } {
  const { port, path, perSecond, eventBytes, stamp } = publishing
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  // 'X-EventSource-Event' names the event's type to nchan; the others ignore it.
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n` +
    `X-EventSource-Event: tick\r\nContent-Length: ${eventBytes}\r\n\r\n`
  let waiting = 0
  let rest = ''

  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    const answers = (rest + text).split(/HTTP\/1\.1 (?=\d{3})/)
    // The part that could still become a status line is looked at again with what follows.
    rest = answers.at(-1)!.slice(-11)
    for (const answer of answers.slice(1)) {
      if (!answer.startsWith('2')) throw new Error(`a publish was answered with ${answer}`)
      waiting -= 1
    }
    pace.resume()
  })

  const pace = keepPace(perSecond, (due) => {
    if (waiting === maxWaiting) return false
    waiting += 1
    socket.write(head + JSON.stringify(stampedEvent(eventBytes, stamp === 'due' ? due : nowMicros())))
    return true
  })

  return {
    stop() {
      pace.stop()
      socket.destroy()
    },
  }
}

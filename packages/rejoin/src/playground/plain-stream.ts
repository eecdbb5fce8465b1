import type { ServerResponse } from 'node:http'

/**
 * Server-Sent Events as most samples show them: a set of responses, and a loop that writes to each. Without ids and memory, a
 * reader loses all events that are sent while it is away, and nobody learns of the loss. The playground runs it beside Rejoin.
 */
export function createPlainStream(): PlainStream {
  const topics = new Map<string, Set<ServerResponse>>()

  return {
    subscribe(topic, response) {
      const readers = topics.get(topic) ?? new Set()
      topics.set(topic, readers.add(response))
      response.once('close', () => {
        readers.delete(response)
        if (readers.size === 0 && topics.get(topic) === readers) topics.delete(topic)
      })
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
      response.write('retry: 1000\n\n')
    },

    broadcast(topic, line) {
      for (const reader of topics.get(topic) ?? []) {
        // Samples leave this out, and a server cannot: a reader that never reads must not fill our memory.
        if (reader.writableLength > maxPendingBytes) reader.destroy()
        else reader.write(`data: ${line}\n\n`)
      }
    },

    end(topic) {
      for (const reader of topics.get(topic) ?? []) reader.end()
      // An ended response takes a moment to close, and must not be written to meanwhile.
      topics.delete(topic)
    },

    close() {
      for (const readers of topics.values()) for (const reader of readers) reader.end()
      topics.clear()
    },
  }
}

const maxPendingBytes = 64 * 1024

export interface PlainStream {
  /** Answers with a stream of all lines that are broadcast to the topic from now on. */
  subscribe(topic: string, response: ServerResponse): void
  /** Sends one line of text to the readers that are connected at this moment. */
  broadcast(topic: string, line: string): void
  /** Ends the open streams of a topic. */
  end(topic: string): void
  /** Ends every open stream. */
  close(): void
}

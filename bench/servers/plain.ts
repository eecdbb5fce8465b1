import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { readText } from './post.ts'
import { serve } from './serve.ts'

// What one writes without a library: a set of responses, one frame per event, one write per reader.
const responses = new Set<ServerResponse>()

serve({
  async handler(request, response) {
    if (request.method === 'POST') {
      broadcast(await readText(request))
      response.end()
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
    response.flushHeaders()
    responses.add(response)
    response.on('close', () => responses.delete(response))
  },
  publish: (_, data) => broadcast(JSON.stringify(data)),
})

function broadcast(data: string): void {
  const frame = `id: ${randomUUID()}\nevent: tick\ndata: ${data}\n\n`
  for (const response of responses) response.write(frame)
}

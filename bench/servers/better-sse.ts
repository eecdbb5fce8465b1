import { createChannel, createSession } from 'better-sse'
import { readText } from './post.ts'
import { serve } from './serve.ts'

const channel = createChannel()

serve({
  async handler(request, response) {
    if (request.method === 'POST') {
      channel.broadcast(JSON.parse(await readText(request)), 'tick')
      response.end()
    } else {
      channel.register(await createSession(request, response))
    }
  },
  publish: (_, data) => void channel.broadcast(data, 'tick'),
})

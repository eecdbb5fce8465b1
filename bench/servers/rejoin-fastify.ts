import { createHub } from '@rejoin/hub'
import { fastifyPlugin } from '@rejoin/hub/fastify'
import { memoryLog } from '@rejoin/hub/memory'
import fastify from 'fastify'
import { serve } from './serve.ts'

const hub = await createHub({ log: memoryLog() })
const app = fastify()
await app.register(fastifyPlugin(hub))
await app.ready()

serve({
  handler: (request, response) => app.routing(request, response),
  publish: (channel, data) => void hub.publish(channel, { type: 'tick', data }),
})

import { getRequestListener } from '@hono/node-server'
import { createHub } from '@rejoin/hub'
import { fetchHandler } from '@rejoin/hub/fetch'
import { memoryLog } from '@rejoin/hub/memory'
import { serve } from './serve.ts'

const hub = await createHub({ log: memoryLog() })
const handler = fetchHandler(hub)

serve({
  handler: getRequestListener((request) => handler(request)),
  publish: (channel, data) => void hub.publish(channel, { type: 'tick', data }),
})

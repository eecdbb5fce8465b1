import { getRequestListener } from '@hono/node-server'
import { createHub } from '@rejoin/hub'
import { honoHandler } from '@rejoin/hub/hono'
import { memoryLog } from '@rejoin/hub/memory'
import { Hono } from 'hono'
import { serve } from './serve.ts'

const hub = await createHub({ log: memoryLog() })

serve({
  handler: getRequestListener(new Hono().use(honoHandler(hub)).fetch),
  publish: (channel, data) => void hub.publish(channel, { type: 'tick', data }),
})

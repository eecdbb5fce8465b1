import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { serve } from './serve.ts'

const hub = await createHub({ log: memoryLog() })

serve({
  handler: nodeHandler(hub),
  publish: (channel, data) => void hub.publish(channel, { type: 'tick', data }),
})

import { createHub } from '@rejoin/hub'
import { expressHandler } from '@rejoin/hub/express'
import { memoryLog } from '@rejoin/hub/memory'
import express from 'express'
import { serve } from './serve.ts'

const hub = await createHub({ log: memoryLog() })

serve({
  handler: express().use(expressHandler(hub)),
  publish: (channel, data) => void hub.publish(channel, { type: 'tick', data }),
})

import { createHash } from 'node:crypto'
import { type Serving, serve as serveProgram } from 'rejoin'
import { programAdminToken, programToken } from './program-token.ts'
import { serve } from './serve.ts'

let serving: Serving

serve({
  async listen() {
    const sha256 = createHash('sha256').update(programToken).digest('hex')
    serving = await serveProgram({
      port: 0,
      access: { keys: [{ name: 'bench', sha256, publish: ['*'] }], anonymous: { subscribe: ['*'] } },
      admin: { token: programAdminToken },
      // On, and too high to be met: counted for every request all the same.
      limits: {
        ...{ maxConnections: 1e6, maxPerIp: 1e6, maxPerSubject: 1e6, maxOpensPer10s: 1e6 },
        ...{ maxPublishesPerSecond: 1e6, maxChannels: 50 },
      },
    })
    return Number(new URL(serving.url).port)
  },
  publish: (channel, data) => void serving.hub.publish(channel, { type: 'tick', data }),
})

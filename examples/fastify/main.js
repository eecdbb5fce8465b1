// A hub inside a Fastify application, behind its hooks: `node examples/fastify/main.js`, after `npm run build`.
import { createHub } from '@rejoin/hub'
import { fastifyPlugin } from '@rejoin/hub/fastify'
import { memoryLog } from '@rejoin/hub/memory'
import fastify from 'fastify'

const hub = await createHub({ log: memoryLog() }) // lmdbLog('./data') of '@rejoin/hub/lmdb' survives a restart
const app = fastify()

// Whoever a hook turns away does not reach the hub.
app.addHook('onRequest', async (request, reply) => {
  if (request.query.user === undefined) return reply.code(401).send({ error: 'Say who you are: ?user=ada' })
})

// All of it: /api/events, /api/poll and /api/publish. Each user reads what is theirs, and nobody publishes over HTTP.
await app.register(
  fastifyPlugin(hub, {
    authorize: ({ query: { user } }) => ({ subject: user, subscribe: [`users/${user}/*`], publish: [] }),
  }),
  { prefix: '/api' },
)

app.post('/greet/:name', async (request) => {
  const { id } = await hub.publish(`users/${request.params.name}/inbox`, { data: `hello from ${request.query.user}` })
  return { id }
})

// Before the server waits for its connections to end, which streams do not by themselves: in `onClose` it would be too late.
app.addHook('preClose', async () => {
  await hub.drain({ withinMs: 500 })
  await hub.close()
})
await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })

const address = `http://127.0.0.1:${app.server.address().port}`
console.log(`Read:  curl -N '${address}/api/events/users/ada/inbox?user=ada'`)
console.log(`Greet: curl -X POST '${address}/greet/ada?user=bob'`)

process.once('SIGINT', () => app.close())

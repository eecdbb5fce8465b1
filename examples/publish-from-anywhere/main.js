// Publishing from curl, Python and PHP, each with a token that it signs itself: `node examples/publish-from-anywhere/main.js`,
// after `npm run build`. What is not installed is passed over.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connect } from '@rejoin/client'
import { serve } from 'rejoin'

const secret = randomBytes(48).toString('base64')
const serving = await serve({
  port: 0,
  // Those who know the secret publish what their token says; everybody may read.
  access: { jwt: [{ secret }], anonymous: { subscribe: ['orders/*'] } },
})

const stream = connect(`${serving.url}/events/orders/42`)
const events = stream[Symbol.asyncIterator]()
let next = events.next()
await new Promise((connected) => stream.onState(({ state, stale }) => state === 'connected' && !stale && connected()))

const run = promisify(execFile)
const programs = { sh: 'publish.sh', python3: 'publish.py', php: 'publish.php' }
for (const [command, file] of Object.entries(programs)) {
  const path = fileURLToPath(new URL(file, import.meta.url))
  try {
    const { stdout } = await run(command, [path], { env: { ...process.env, HUB: serving.url, SECRET: secret } })
    console.log(file, 'published', /[0-9A-Z]{26}/.exec(stdout)?.[0])
    const { value } = await next
    console.log('  got', value.id, 'from', value.data.from)
    next = events.next()
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    console.log(file, `passed over: there is no ${command}`)
  }
}

stream.close()
await serving.close()

import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createViteServer } from 'vitest/node'
import { startProgram } from '../../support/program.ts'
import { freePort } from '../../support/proxies/proxy.ts'
import { readText } from '../../support/repository.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

test('behind the development server of Vite, with the lines of the guide, a page notices that the hub was killed', async () => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const [, block = ''] = /`vite\.config\.js`:\n\n```js\n([\s\S]*?)```/.exec(readText('docs/guides/proxies.md')) ?? []
  const port = await freePort()
  const file = join(folder, 'vite.config.mjs')
  writeFileSync(file, block.replace('127.0.0.1:4747', `127.0.0.1:${port}`))
  const { default: config } = await import(pathToFileURL(file).href)

  const hub = await startProgram({ port, env: { REJOIN_LOG: 'memory' } })
  onTestFinished(async () => void (await hub.kill()))
  const vite = await createViteServer({
    root: folder,
    configFile: false,
    logLevel: 'silent',
    server: { ...config.server, host: '127.0.0.1', port: 0 },
  })
  onTestFinished(() => vite.close())
  await vite.listen()
  const asked = get(`${vite.resolvedUrls?.local[0]}events/demo`, { agent: false })
  const [stream] = (await once(asked, 'response')) as [IncomingMessage]
  await once(stream, 'data')
  // A stream that was cut ends with an error, and then closes.
  const closed = new Promise((resolve) => stream.on('error', () => undefined).on('close', resolve))
  await hub.kill()
  await closed
  expect(stream.complete).toBe(false)
})

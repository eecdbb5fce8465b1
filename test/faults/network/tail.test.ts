import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { type Cut, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { program } from '../../support/paths.ts'

const cuts = 20

test('rejoin tail prints every event once, in order, through twenty cuts at any byte', async () => {
  const hub = await createHub({ log: memoryLog({ window: { maxEvents: 1_000_000 } }), retryMs: 500 })
  const server = createServer(nodeHandler(hub)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const random = createRandom(1)
  const proxy = await openFaultProxy({ target: { port: (server.address() as AddressInfo).port }, random })
  onTestFinished(async () => {
    await proxy.close()
    await hub.close()
    server.close()
  })
  proxy.onLink((link) => {
    const how: Cut = link.number % 2 === 0 ? 'reset' : 'fin'
    if (link.number < cuts) void link.cutAt(400 + Math.floor(random() * 8000), how)
  })

  const tail = startTail(`http://127.0.0.1:${proxy.port}`)
  await expect.poll(() => hub.readers('numbers')).toBe(1)
  let published = 0
  while (proxy.cuts < cuts) {
    published += 1
    await hub.publish('numbers', { data: published })
    await setTimeout(4)
  }
  await expect.poll(() => tail.printed.length, { timeout: 30_000 }).toBe(published)
  expect(await tail.end()).toBe(130)
  expect(tail.printed).toEqual(Array.from({ length: published }, (_, index) => index + 1))
  expect(tail.said()).toMatch(/rejoin: cut off, trying again in [\d.]+ m?s\n(.*\n)*rejoin: connected again\n/)
  expect(tail.said()).not.toContain('gone')
})

function startTail(url: string) {
  const child = spawn(process.execPath, [program, 'tail', 'numbers', '--json', '--url', url])
  const ended = once(child, 'close')
  onTestFinished(() => void child.kill('SIGKILL'))
  const printed: unknown[] = []
  let said = ''
  createInterface({ input: child.stdout }).on('line', (line) => printed.push(JSON.parse(line).data))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  return {
    printed,
    said: () => said,
    async end() {
      child.kill('SIGINT')
      await ended
      return child.exitCode
    },
  }
}

import { expect, test } from 'vitest'
import { run } from './support/fake-process.ts'
import { open, send, serving, until } from './support/http.ts'

test('the services of the network are served when they are asked for, and else the path does not exist', async () => {
  const { url } = await serving({ mdns: { interface: '127.0.0.1' } })
  const stream = await open(url, '/v1/mdns/events?type=_rejoin-none._tcp')
  expect(await until(stream, 'event: hello')).toContain('"resumed":false')
  const { status, text } = await send(url, '/v1/mdns/status')
  expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 200, healthy: true })
  expect((await send((await serving()).url, '/v1/mdns/status')).status).toBe(404)
})

test('the rules of the program hold for the services too', async () => {
  const access = { anonymous: { subscribe: ['mdns/_ipp._tcp'] } }
  const { url } = await serving({ mdns: { interface: '127.0.0.1' }, access })
  expect((await send(url, '/v1/mdns/resolve?name=x._http._tcp')).status).toBe(401)
  const stream = await open(url, '/v1/mdns/events?type=ipp')
  await until(stream, 'event: hello')
})

test('a program that stops lets the readers of services go with a word', async () => {
  const server = await serving({ mdns: { interface: '127.0.0.1' } })
  const stream = await open(server.url, '/v1/mdns/events?type=_rejoin-none._tcp&idle_for=0')
  await until(stream, 'event: hello')
  const [ended] = await Promise.all([until(stream, 'event: close'), server.close()])
  expect(ended).toContain('"reason":"drain"')
})

test('a setting of a source that is off is rejected, because it would have no effect', async () => {
  const { exitCode, stderr } = await run(['serve', '--mdns-interface', '127.0.0.1', '--log', 'memory', '--port', '0'])
  expect(exitCode).not.toBe(0)
  expect(stderr).toContain('Add --mdns')
})

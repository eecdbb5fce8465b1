import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { resetSocket } from '../../src/http/connection.ts'

test.each([
  ['that is open', () => undefined],
  ['that has just ended', (socket: Socket) => void socket.end()],
  ['whose end waits for what the peer does not read', (socket: Socket) => void socket.end(Buffer.alloc(20_000_000))],
])('a connection %s is over at once when it is reset', async (_, prepare) => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const peer = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).pause()
  onTestFinished(() => void peer.destroy())
  peer.on('error', () => undefined)
  const [socket] = (await once(server, 'connection')) as [Socket]
  const errors: Error[] = []
  socket.on('error', (error) => errors.push(error))
  prepare(socket)
  resetSocket(socket)
  await once(socket, 'close')
  expect(errors).toEqual([])
})

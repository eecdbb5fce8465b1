import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect } from 'node:tls'

/** Lets clients without TLS reach a hub with TLS. */
export async function openRelay(port: number): Promise<Relay> {
  const open = new Set<Socket>()
  const server = createServer((plain) => {
    const secured = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    for (const [socket, other] of [
      [plain, secured],
      [secured, plain],
    ] as const) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.once('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

export interface Relay {
  readonly port: number
  close(): void
}

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that leads each connection to the next of its targets, as a load balancer without affinity does. */
export async function openRoundRobin(urls: readonly string[]): Promise<RoundRobin> {
  const ports = urls.map((url) => Number(new URL(url).port))
  const sockets = new Set<Socket>()
  let count = 0
  const server = createServer((client) => {
    const hub = connect(ports[count % ports.length] as number, '127.0.0.1')
    count += 1
    for (const [socket, other] of [
      [client, hub],
      [hub, client],
    ] as const) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket)
          other.destroy()
        })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: (port) => void ports.push(port),
    remove: (port) => void ports.splice(ports.indexOf(port), 1),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface RoundRobin {
  readonly url: string
  /** Leads new connections to this port of the machine, too. */
  add(port: number): void
  /** Leads no new connection there. Open ones stay. */
  remove(port: number): void
  close(): void
}

import { lookup } from 'node:dns/promises'
import type { AddressInfo, Server } from 'node:net'
import { RejoinError } from '@rejoin/protocol'

/** Listens on a resolved address and gives the port, which the system chose if 0 was asked for. */
export async function listen(server: Server, { address, port }: Address): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host: address, backlog: largestBacklog }, () => {
        server.off('error', reject)
        resolve()
      })
    })
  } catch (cause) {
    throw rejection(cause as NodeJS.ErrnoException, { address, port })
  }
  return (server.address() as AddressInfo).port
}

/**
 * The address a host name stands for. It is judged and listened on as one and the same, so that a name which another
 * resolver reads differently cannot open the hub to others.
 */
export async function resolveHost(host: string): Promise<string> {
  try {
    return (await lookup(host)).address
  } catch (cause) {
    throw new RejoinError(
      `The host ${JSON.stringify(host)} has no address here. Use 127.0.0.1 or an address of this machine.`,
      {
        code: 'invalid-option',
        cause,
      },
    )
  }
}

// The system cuts it to its own limit (net.core.somaxconn, 4,096 on Linux since 5.4). Node's default of 511 makes readers that
// return together wait: a connection beyond the backlog is tried again by its client after 1, 3 and 7 s.
const largestBacklog = 65_535

export interface Address {
  address: string
  port: number
}

function rejection(cause: NodeJS.ErrnoException, { address, port }: Address): RejoinError {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new RejoinError(`Port ${port} of ${address} is taken, perhaps by another Rejoin. Choose another port.`, {
        code: 'address-in-use',
        retryable: true,
        cause,
      })
    case 'EACCES':
      return new RejoinError(`This user may not listen on port ${port}. Choose one above 1023.`, {
        code: 'invalid-option',
        cause,
      })
    default:
      return new RejoinError(
        `Cannot listen on ${address}, port ${port}: ${cause.message}. Choose an address of this machine.`,
        {
          code: 'invalid-option',
          cause,
        },
      )
  }
}

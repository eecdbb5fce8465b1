import { lookup } from 'node:dns/promises'
import type { AddressInfo, Server } from 'node:net'
import { RejoinError } from '@rejoin/protocol'

/** Listens on a resolved address, and gives the port. With port 0 the system chooses one. */
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
 * The address of a host name. The program checks this address and listens on the same one: resolved twice, a name could pass the
 * check as a loopback address, and then open the hub to other machines.
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

// The system lowers it to its own limit (net.core.somaxconn, 4,096 on Linux since 5.4). With Node's default of 511, readers that
// return together wait: a client tries a connection beyond the backlog again after 1, 3 and 7 s.
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

import { createServer } from 'node:net'

/** The first free port after `port`; 0 when there is none. `avoided` ports may be free, but are needed for something else. */
export async function freePortAfter(
  port: number,
  host: string,
  avoided: readonly (number | undefined)[],
): Promise<number> {
  for (let next = port + 1; next <= 65_535; next += 1) {
    if (!avoided.includes(next) && (await isFree(next, host))) return next
  }
  return 0
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host }, () => server.close(() => resolve(true)))
  })
}

import { createServer } from 'node:net'
import type { ServerProcess } from '../../support/server-process.ts'

/** A hub process that can be ended and started again, at the same address. */
export async function openLastingHub<Started extends ServerProcess, Changes>(
  options: LastingHubOptions<Started, Changes>,
): Promise<LastingHub<Started, Changes>> {
  const port = await quietPort(options.random)
  let current: Started | undefined
  let unexpected: string | undefined

  async function start(changes?: Changes): Promise<void> {
    const hub = await options.start(port, changes)
    current = hub
    void hub.ended.then((end) => {
      if (current === hub) unexpected = `The hub ended by itself with ${end.signal ?? end.code}. ${end.said}`
    })
  }

  /** The process that is there; a run on a hub that has died proves nothing. */
  function running(): Started {
    if (unexpected !== undefined) throw new Error(unexpected)
    if (!current) throw new Error('The hub is not running.')
    return current
  }

  function taken(): Started {
    const hub = running()
    current = undefined
    return hub
  }

  await start()
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    running,
    start,
    async kill() {
      await taken().kill()
    },
    async killWhileStopping(afterMs) {
      const hub = taken()
      void hub.stop()
      await new Promise((resolve) => setTimeout(resolve, afterMs))
      return (await hub.kill()).signal === 'SIGKILL'
    },
    async stop() {
      const { code, signal, said } = await taken().stop()
      if (code !== 0) throw new Error(`The hub did not end in order, but with ${signal ?? code}. ${said}`)
    },
    async abandon() {
      const hub = current
      current = undefined
      await hub?.kill()
    },
  }
}

export interface LastingHubOptions<Started, Changes> {
  /** On what the one before has left behind. */
  start(port: number, changes: Changes | undefined): Promise<Started>
  random(): number
}

export interface LastingHub<Started = ServerProcess, Changes = unknown> {
  readonly origin: string
  readonly port: number
  /** Throws when it has ended by itself. */
  running(): Started
  start(changes?: Changes): Promise<void>
  /** By SIGKILL. */
  kill(): Promise<void>
  /** Asks it to end in order and kills it so many ms later. False when it had ended by then. */
  killWhileStopping(afterMs: number): Promise<boolean>
  /** In order; throws when that fails. */
  stop(): Promise<void>
  /** For the end of a test, whatever state it is in. */
  abandon(): Promise<void>
}

/**
 * A free port that the system does not hand out by itself. While the hub is away, readers go on calling its port; one of
 * those that are handed out could become the caller's own, which would then talk to itself and keep the hub out.
 */
async function quietPort(random: () => number): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    // Runs of the same seed may stand side by side, and would each find the same port free.
    const port = 20_000 + ((Math.floor(random() * 12_000) + process.pid) % 12_000)
    if (await isFree(port)) return port
  }
  throw new Error('No port from 20,000 to 31,999 is free.')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/**
 * Two network namespaces that see each other and nothing else: what is multicast there reaches no interface of this machine. The
 * hub is in one of them, and is reached from the test by a socket in a folder.
 */
export interface Link {
  /** Runs a command in the namespace of the responders, or of the hub. */
  readonly responders: readonly string[]
  readonly hub: readonly string[]
  readonly addresses: { readonly responders: string; readonly hub: string }
  /** The interface of the responders. */
  readonly interface: string
  readonly hubPort: number
  /** Where the hub is reached. */
  readonly socketPath: string
  close(): Promise<void>
}

/** Why there can be no namespaces here; undefined when there can. */
export function whyNoNamespaces(): string | undefined {
  const name = `rejoin-try-${process.pid}`
  try {
    execFileSync('ip', ['netns', 'add', name], { stdio: 'pipe' })
    execFileSync('ip', ['netns', 'delete', name], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return (error as Error).message.split('\n')[0]
  }
}

export async function openLink(): Promise<Link> {
  const name = `rj${process.pid}`
  const responders = `${name}a`
  const hub = `${name}b`
  const addresses = { responders: '10.213.77.1', hub: '10.213.77.2' }
  const hubPort = 4747
  ip('netns', 'add', responders)
  ip('netns', 'add', hub)
  ip('link', 'add', `${name}va`, 'netns', responders, 'type', 'veth', 'peer', 'name', `${name}vb`, 'netns', hub)
  for (const [space, device, address] of [
    [responders, `${name}va`, addresses.responders],
    [hub, `${name}vb`, addresses.hub],
  ] as const) {
    ip('-n', space, 'address', 'add', `${address}/24`, 'dev', device)
    ip('-n', space, 'link', 'set', device, 'up')
    ip('-n', space, 'link', 'set', 'lo', 'up')
  }
  // The kernel tells programs of the carrier up to a second later. Until then Node does not list the interface.
  await isRunning(responders, `${name}va`)
  await isRunning(hub, `${name}vb`)
  const { folder, remove } = temporaryFolder()
  const socketPath = `${folder}/hub.sock`
  const relay = spawn('ip', ['netns', 'exec', hub, process.execPath, relayFile, socketPath, `${hubPort}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(relay.stdout, 'data')
  return {
    responders: ['ip', 'netns', 'exec', responders],
    hub: ['ip', 'netns', 'exec', hub],
    addresses,
    interface: `${name}va`,
    hubPort,
    socketPath,
    async close() {
      relay.kill()
      await once(relay, 'exit')
      ip('netns', 'delete', responders)
      ip('netns', 'delete', hub)
      remove()
    },
  }
}

const relayFile = fileURLToPath(new URL('relay.js', import.meta.url))

/** Resolves when the interface is there for programs. */
async function isRunning(space: string, device: string): Promise<void> {
  for (let look = 0; look < 500; look += 1) {
    if (ip('-n', space, 'link', 'show', 'dev', device).includes(' state UP ')) return
    await setTimeout(20)
  }
  throw new Error(`The interface ${device} did not come up within 10 s.`)
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { stdio: 'pipe', encoding: 'utf8' })
}

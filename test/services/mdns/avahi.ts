import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { onTestFailed } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { until } from '../../support/until.ts'
import type { Link } from './link.ts'

/** An `avahi-daemon` among the responders, without D-Bus and with services from files of its own. */
export interface Avahi {
  /** Announces services, or changes them. Resolves when Avahi has read them. */
  announce(...services: readonly AvahiService[]): Promise<void>
  /** Resolves when Avahi has noticed. */
  withdraw(...names: readonly string[]): Promise<void>
  /** Ends in order: it takes all its services back. */
  stop(): Promise<void>
  /** Ends without a word. */
  kill(): Promise<void>
}

export interface AvahiService {
  readonly name: string
  readonly port: number
  readonly txt?: string
}

export async function startAvahi(link: Link, initial: readonly AvahiService[] = []): Promise<Avahi> {
  const { folder, remove } = temporaryFolder()
  const services = `${folder}/services`
  const incoming = `${folder}/incoming`
  let written = 0
  await mkdir(services)
  await mkdir(incoming)
  await writeFile(`${folder}/avahi.conf`, settings(link.interface))
  for (const service of initial) await put(service)
  const [command = '', ...args] = [...link.responders, 'sh', '-c', script, 'sh', services, `${folder}/avahi.conf`]
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  onTestFailed(() => console.error(`avahi-daemon said: ${said}`))
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('Server startup complete')) resolve()
    })
    child.once('exit', () => reject(new Error(`avahi-daemon did not start: ${said}`)))
  })

  /** In one step: half a file would be a service that is not one. */
  async function put({ name, port, txt }: AvahiService): Promise<void> {
    await writeFile(`${incoming}/${name}`, serviceFile(name, port, txt))
    // Avahi takes a file for unchanged whose time is that of before, in whole seconds. Each file gets a second of its own.
    written += 1
    await utimes(`${incoming}/${name}`, written, written)
    await rename(`${incoming}/${name}`, `${services}/${name}.service`)
  }

  /** Does something to the file of a service. Resolves when Avahi has noticed, which it says with the path of the file. */
  async function noticed(name: string, work: () => Promise<void>): Promise<void> {
    const before = said.length
    await work()
    const path = `/etc/avahi/services/${name}.service`
    await until(`avahi-daemon notices the change of ${path}`, () => said.includes(`file ${path}`, before), 20_000)
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    remove()
  }

  return {
    async announce(...added) {
      for (const service of added) await noticed(service.name, () => put(service))
    },
    async withdraw(...names) {
      for (const name of names) await noticed(name, () => rm(`${services}/${name}.service`))
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

// The namespace of the command has mounts of its own too, so the folders of this machine's own Avahi stay as they are.
const script = `
set -e
mkdir -p /run/avahi-daemon
mount --bind "$1" /etc/avahi/services
mount -t tmpfs none /run/avahi-daemon
exec avahi-daemon --file "$2" --no-drop-root --no-chroot --no-rlimits
`

function settings(device: string): string {
  return `[server]
host-name=nas
use-ipv4=yes
use-ipv6=no
allow-interfaces=${device}
enable-dbus=no
ratelimit-interval-usec=0
ratelimit-burst=0

[publish]
publish-workstation=no
publish-hinfo=no
`
}

function serviceFile(name: string, port: number, txt?: string): string {
  const record = txt === undefined ? '' : `<txt-record>${txt}</txt-record>`
  return `<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name>${name}</name>
<service><type>_http._tcp</type><port>${port}</port>${record}</service></service-group>
`
}

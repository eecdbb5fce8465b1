import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { inRepository, type ProxyKind, type ProxyKindName, proxyKinds, type Site } from './kinds.ts'

/** A proxy of Debian in front of a hub, on a port and in a folder of its own. */
export interface FrontProxy {
  /** Without a slash at the end. */
  readonly url: string
  /** Makes the program read its configuration again, without a pause. */
  reload(): Promise<void>
  /** Ends the program and starts it again, on the same port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Starts a proxy and waits until it listens. */
export async function startProxy(
  name: ProxyKindName,
  hubPorts: number | readonly [number, number],
  text: string,
): Promise<FrontProxy> {
  const kind: ProxyKind = proxyKinds[name]
  const site = await installed(kind, hubPorts, text)
  let child: ChildProcess | undefined
  let said = ''
  const isLoaded = () => kind.loaded?.test(said) ?? true

  async function start(): Promise<void> {
    const [command, ...args] = kind.command(site)
    const started = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environmentOf(site) })
    said = ''
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (piece: string) => {
        said = (said + piece).slice(-4000)
      })
    }
    child = started
    running.add(started)
    started.once('exit', () => running.delete(started))
    while (!isLoaded() || !(await answers(site.port))) {
      if (started.exitCode !== null) throw new Error(`${name} ended with ${started.exitCode}: ${said}`)
      await sleep(20)
    }
  }

  async function end(): Promise<void> {
    const ending = child
    child = undefined
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const gone = once(ending, 'exit')
    ending.kill('SIGTERM')
    // Only as the last resort: the children of a program that is killed go on for a while, and keep its port.
    const late = setTimeout(() => ending.kill('SIGKILL'), 30_000)
    await gone
    clearTimeout(late)
  }

  await start()
  return {
    url: `http://127.0.0.1:${site.port}`,
    async reload() {
      said = ''
      if (typeof kind.reload === 'string') child?.kill(kind.reload)
      else await kind.reload(site)
      while (!isLoaded()) await sleep(5)
    },
    async restart() {
      await end()
      await start()
    },
    async stop() {
      await end()
      rmSync(site.folder, { recursive: true, force: true })
    },
  }
}

// A test that fails must not leave them behind.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM')
})

/** What the program itself says of a configuration: resolves when it takes it, rejects with its words when it does not. */
export async function checkConfiguration(name: ProxyKindName, text: string): Promise<void> {
  const kind: ProxyKind = proxyKinds[name]
  const site = await installed(kind, 4747, text)
  try {
    const [command, ...args] = kind.check(site)
    await promisify(execFile)(command, args, { env: environmentOf(site), maxBuffer: 16 * 1024 * 1024 })
  } finally {
    rmSync(site.folder, { recursive: true, force: true })
  }
}

/** The configuration that we ship, for one hub or for two. */
export function shippedConfiguration(name: ProxyKindName, hubs: 'shipped' | 'twoHubs' = 'shipped'): string {
  return readFileSync(inRepository(proxyKinds[name][hubs]), 'utf8')
}

/** "nginx 1.22.1", as the program says it. */
export async function versionOf(name: ProxyKindName): Promise<string> {
  const [command, ...args] = (proxyKinds[name] as ProxyKind).version
  const { stdout, stderr } = await promisify(execFile)(command, args)
  return /\d+\.\d+(?:\.\d+)?/.exec(`${stdout}${stderr}`)?.[0] ?? 'unknown'
}

async function installed(kind: ProxyKind, hubPorts: number | readonly [number, number], text: string): Promise<Site> {
  const [hubPort, otherPort = hubPort] = typeof hubPorts === 'number' ? [hubPorts] : hubPorts
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-proxy-'))
  const port = await freePort()
  const configuration = text
    .replaceAll(
      /hub([12])(:|";\s+\.port = ")4747/g,
      (_, number, between) => `127.0.0.1${between}${number === '1' ? hubPort : otherPort}`,
    )
    .replaceAll('127.0.0.1:4747', `127.0.0.1:${hubPort}`)
    .replaceAll('"4747"', `"${hubPort}"`)
    .replaceAll('listen 80', `listen 127.0.0.1:${port}`)
    .replaceAll('bind :80', `bind 127.0.0.1:${port}`)
    .replaceAll('*:80', `127.0.0.1:${port}`)
    .replaceAll(/^:80/gm, `http://127.0.0.1:${port}`)
  const site = { folder, port, adminPort: await freePort(), configuration }
  kind.install(site)
  return site
}

/** Caddy keeps files in the home of its user. */
function environmentOf({ folder }: Site): NodeJS.ProcessEnv {
  return { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
}

/**
 * A port that nobody listens on. Below the ports that the system gives to connections that go out; and each only once, because
 * between the look and the start of the program another one could be given the same.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    if (given.has(port)) continue
    given.add(port)
    if (await canListen(port)) return port
  }
}

const given = new Set<number>()

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Whether the program answers: a port can be open before there is a process to serve it. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get({ host: '127.0.0.1', port, path: '/healthz', agent: false }, (response) => {
      response.resume()
      resolve(true)
    })
    asked.on('error', () => resolve(false))
  })
}

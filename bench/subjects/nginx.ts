import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pinnedTo } from '../processes/cores.ts'
import { childrenOf } from '../processes/usage.ts'

export interface Nginx {
  readonly port: number
  /** Its one worker; the main process does nothing after the start. */
  readonly workerPid: number
  stop(): Promise<void>
}

// A signal would end this process without an 'exit', and leave nginx behind.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

/** Whether there is an nginx, and which of its modules; undefined when there is none. */
export function findNginx(): { readonly nchan: string | undefined } | undefined {
  const { error, stderr } = spawnSync('nginx', ['-V'], { encoding: 'utf8' })
  if (error) return undefined
  const folder = /--modules-path=(\S+)/.exec(stderr)?.[1]
  const nchan = folder && join(folder, 'ngx_nchan_module.so')
  return { nchan: nchan && existsSync(nchan) ? nchan : undefined }
}

/** Starts an nginx of its own, in a temporary folder, which touches nothing of one that is installed and running. */
export async function startNginx(options: {
  readonly core: number
  readonly modules: readonly string[]
  /** The contents of `http { server { … } }`. */
  readonly server: string
}): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-bench-nginx-'))
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), configuration({ ...options, folder, port }))
  const [command, ...args] = [...pinnedTo(options.core), 'nginx', '-p', folder, '-c', join(folder, 'nginx.conf')]
  const main = spawn(command!, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const cleanUp = () => {
    main.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  process.on('exit', cleanUp)

  const workerPid = await untilServing(main.pid!, port)
  return {
    port,
    workerPid,
    async stop() {
      process.off('exit', cleanUp)
      const ended = once(main, 'exit')
      cleanUp()
      await ended
    },
  }
}

function configuration(options: { folder: string; port: number; modules: readonly string[]; server: string }): string {
  const { folder, port, modules, server } = options
  return `
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
${modules.map((module) => `load_module ${module};`).join('\n')}
events {
  worker_connections 15000;
}
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port} backlog=4096;
${server}
  }
}
`
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/** The port is open before there is a worker to serve it. */
async function untilServing(mainPid: number, port: number): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const [worker] = childrenOf(mainPid)
    if (worker !== undefined && (await accepts(port))) return worker
    await sleep(50)
  }
  throw new Error(`nginx does not serve port ${port} after 5 s; what it said stands above`)
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemEnvironment } from '@rejoin/hub'
import { builtModule } from '../../support/paths.ts'
import { ServerDidNotStart, type ServerProcess, serverProcess } from '../../support/server-process.ts'
import { tellParent } from '../../support/tell-parent.ts'
import type { History, Rest } from '../history/history.ts'
import { type ServedHubOptions, serveHub } from './served-hub.ts'

/**
 * A hub in a process of its own, so that its memory is its own, readers do not slow it down, and it can be killed. Its
 * memory is written into the history once a second. The process runs the compiled form of this file.
 */
export async function startHub(history: History, { under = [], ...options }: HubProcessOptions): Promise<StartedHub> {
  const [command = '', ...args] = [...under, process.execPath, program, JSON.stringify(options)]
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
  const server = serverProcess(child, () => child.disconnect())
  const port = await new Promise<number>((resolve, reject) => {
    child.on('message', (message: ChildMessage) => {
      if (message.kind === 'listening') resolve(message.port)
      else if (message.kind === 'memory') history.write({ kind: 'memory', of: 'hub', rssBytes: message.rssBytes })
    })
    void server.ended.then((end) => reject(new ServerDidNotStart(end)))
  })
  const send = (message: ParentMessage) => void child.send(message)
  return {
    ...server,
    port,
    setClock: (aheadMs) => send({ kind: 'clock', aheadMs }),
    measureAtRest() {
      const measured = new Promise<void>((resolve, reject) => {
        const onMessage = (message: ChildMessage) => {
          if (message.kind !== 'rest') return
          child.off('message', onMessage)
          history.write({ ...message, of: 'hub' })
          resolve()
        }
        child.on('message', onMessage)
        void server.ended.then(() => reject(new Error('The hub ended before it was measured.')))
      })
      send({ kind: 'measure' })
      return measured
    },
  }
}

export interface HubProcessOptions extends Omit<ServedHubOptions, 'tamper' | 'environment'> {
  /**
   * How far its clock is ahead of ours, in ms.
   * @defaultValue 0
   */
  readonly aheadMs?: number
  /**
   * A command to run it under, such as a tracer.
   * @defaultValue none
   */
  readonly under?: readonly string[]
}

export interface StartedHub extends ServerProcess {
  readonly port: number
  /** Steps its clock to so many ms ahead of ours. */
  setClock(aheadMs: number): void
  /** Makes it collect its garbage, and writes what it still holds into the history. */
  measureAtRest(): Promise<void>
}

type ChildMessage =
  | { kind: 'listening'; port: number }
  | { kind: 'memory'; rssBytes: number }
  | ({ kind: 'rest' } & Rest)
type ParentMessage = { kind: 'clock'; aheadMs: number } | { kind: 'measure' }

// Node does not read TypeScript in all versions that we test on, so tests start what the build has made of it.
const program = builtModule('faults/hubs/hub-process.ts')

async function serveParent({ aheadMs = 0, ...options }: HubProcessOptions): Promise<void> {
  let ahead = aheadMs
  const tell = (message: ChildMessage) => tellParent(message)
  process.on('message', (message: ParentMessage) => {
    if (message.kind === 'clock') ahead = message.aheadMs
    else void restOf().then((rest) => tell({ kind: 'rest', ...rest }))
  })
  const { port, close } = await serveHub({
    ...options,
    environment: { ...systemEnvironment, now: () => Date.now() + ahead },
  })
  tell({ kind: 'listening', port })
  const timer = setInterval(() => tell({ kind: 'memory', rssBytes: process.memoryUsage.rss() }), 1000)
  // Also when the parent has died: nobody is left whom this could serve.
  process.once('disconnect', () => {
    clearInterval(timer)
    void close().finally(() => process.exit())
  })
}

/** What this process holds on to after a collection. */
async function restOf(): Promise<Rest> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Several times, because what one collection finalises only the next one frees.
  for (let times = 0; times < 4; times += 1) {
    collect()
    await new Promise(setImmediate)
  }
  const { heapUsed, external } = process.memoryUsage()
  return {
    heapBytes: heapUsed + external,
    descriptors: readdirSync('/proc/self/fd').length,
    timers: process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length,
  }
}

// This file is both ends: started as a program, it is the hub.
if (process.send && process.argv[1] === program) {
  await serveParent(JSON.parse(process.argv[2] ?? '{}'))
}

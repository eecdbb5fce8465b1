import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { History } from './history.ts'
import { type ServedHubOptions, serveHub } from './served-hub.ts'

/**
 * A hub in a process of its own, so that its memory is its own and readers do not slow it down. Its memory is written into
 * the history once a second. Runs from the compiled files only.
 */
export async function startHub(history: History, options: Omit<ServedHubOptions, 'tamper'>): Promise<StartedHub> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)])
  const port = await new Promise<number>((resolve, reject) => {
    child.on('message', (message: ChildMessage) => {
      if (message.kind === 'listening') resolve(message.port)
      else history.write({ kind: 'memory', of: 'hub', rssBytes: message.rssBytes })
    })
    child.once('exit', (code) => reject(new Error(`The hub ended with ${code} before it was there.`)))
  })
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.disconnect()
      }),
  }
}

export interface StartedHub {
  readonly port: number
  stop(): Promise<void>
}

type ChildMessage = { kind: 'listening'; port: number } | { kind: 'memory'; rssBytes: number }

async function serveParent(options: ServedHubOptions): Promise<void> {
  const { port, close } = await serveHub(options)
  const tell = (message: ChildMessage) => process.send?.(message)
  tell({ kind: 'listening', port })
  const timer = setInterval(() => tell({ kind: 'memory', rssBytes: process.memoryUsage.rss() }), 1000)
  // Also when the parent has died: nobody is left whom this could serve.
  process.once('disconnect', () => {
    clearInterval(timer)
    void close().finally(() => process.exit())
  })
}

// This file is both ends: forked, it is the hub.
if (process.send && process.argv[1] === fileURLToPath(import.meta.url)) {
  await serveParent(JSON.parse(process.argv[2] ?? '{}'))
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { keepFromOthers } from './open-tab.ts'

/**
 * The Chromium of this machine. `npm test` leaves test/browser out when there is none; run by hand, these tests fail
 * here and say what to install.
 */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: quiet })
}

/**
 * The same as its user has it: a tab that another covers is hidden and can be frozen. Playwright otherwise makes every tab
 * believe that it is looked at.
 */
export async function launchPlainChromium(): Promise<PlainChromium> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-chromium-'))
  // Without a first tab: Playwright waits for those it finds when it connects, and has waited in vain for one half made.
  const args = [...quiet, '--no-startup-window', '--remote-debugging-port=0', `--user-data-dir=${folder}`]
  const child = spawn(findChromium(), args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'close')
  // A test run that is broken off must not leave it behind.
  const kill = () => child.kill()
  process.once('exit', kill)
  const browser = await chromium.connectOverCDP(await endpointOf(child.stderr), { noDefaults: true })
  const context = browser.contexts()[0] as BrowserContext
  // One that stays: Chromium ends with its last tab.
  await context.newPage()
  return {
    context,
    async close() {
      child.kill()
      await ended
      process.off('exit', kill)
      rmSync(folder, { recursive: true, maxRetries: 5 })
    },
  }
}

export interface PlainChromium {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Goes on reading after that: Chromium would stop when the pipe is full. */
function endpointOf(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines = createInterface(output)
    lines.on('line', (line) => {
      const [, endpoint] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
      if (endpoint !== undefined) resolve(endpoint)
    })
    lines.on('close', () => reject(new Error('Chromium ended before it listened.')))
  })
}

/** Takes one page offline; Playwright's own way takes all of a context. Returns what brings it back. */
export async function goOffline(page: Page): Promise<() => Promise<void>> {
  keepFromOthers(page)
  const session = await page.context().newCDPSession(page)
  const set = async (offline: boolean) => {
    const unlimited = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 }
    await session.send('Network.emulateNetworkConditions', { offline, ...unlimited })
  }
  await set(true)
  return () => set(false)
}

// No sandbox, because containers run as root; the rest keeps a browser that only visits 127.0.0.1 off the network.
const quiet = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

function findChromium(): string {
  // The names that scripts/services.js looks for.
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
  if (found === undefined) throw new Error('No Chromium on the PATH. To add it: sudo apt-get install -y chromium')
  return found
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // Absent and not executable are the same to us.
    return false
  }
}

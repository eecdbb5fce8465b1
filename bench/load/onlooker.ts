import { spawnSync } from 'node:child_process'
import { type Browser, chromium, type Page } from 'playwright-core'
import { answerCalls } from '../processes/commands.ts'

export interface Looking {
  readonly port: number
  readonly token: string
}

export interface Frames {
  readonly perSecond: number
  readonly longestMs: number
}

let browser: Browser
let page: Page

const commands = {
  async start(): Promise<void> {
    browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', '--disable-gpu'] })
  },

  /** Opens the dashboard as a person does, and waits for its figures. */
  async open({ port, token }: Looking): Promise<void> {
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    await page.goto(`http://127.0.0.1:${port}/dashboard`)
    await page.getByLabel('Admin token').fill(token)
    await page.getByLabel('Admin token').press('Enter')
    await page.locator('[data-figure="Connections"]').waitFor()
  },

  /** A page with nothing on it: what the browser can do here at most. */
  async openEmpty(): Promise<void> {
    page = await browser.newPage()
  },

  frames: ({ ms }: { ms: number }): Promise<Frames> => page.evaluate(countFrames, ms),

  close: (): Promise<void> => page.close(),

  stop: (): Promise<void> => browser.close(),
}

export type OnlookerCommands = typeof commands

answerCalls(commands)

// Of the page, whose other names have no place in a program for Node.
declare function requestAnimationFrame(draw: (now: number) => void): number

/** Runs in the page. */
function countFrames(ms: number): Promise<Frames> {
  return new Promise((resolve) => {
    let [frames, longestMs] = [0, 0]
    let [start, before] = [0, 0]
    const next = (now: number) => {
      if (start === 0) start = now
      else {
        frames += 1
        longestMs = Math.max(longestMs, now - before)
      }
      before = now
      if (now - start < ms) requestAnimationFrame(next)
      else resolve({ perSecond: (1000 * frames) / (now - start), longestMs })
    }
    requestAnimationFrame(next)
  })
}

function findChromium(): string {
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  const found = names.map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim()).find(Boolean)
  if (found === undefined) throw new Error('No Chromium on the PATH. To add it: sudo apt-get install -y chromium')
  return found
}

import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

/**
 * The Chromium of this machine. `npm test` leaves test/browser out when there is none; run by hand, these tests fail
 * here and say what to install.
 */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: quiet })
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

/**
 * A name for this tab, by which it has a channel and a line of its own. A browser uses its names again and again: with a new one
 * for each visit, each visit would leave a channel in the log. A lock tells which of them another tab has.
 */
export async function takeTabName(): Promise<string> {
  const browser = nameOfBrowser()
  // Only pages that are loaded safely have locks.
  if (!browser || !navigator.locks) return randomName()
  for (let number = 0; number < mostTabs; number += 1) {
    const name = `${browser}${number}`
    if (await isTaken(name)) return name
  }
  return randomName()
}

const mostTabs = 10

/** Whether this page has got the lock. It is held for as long as the page is there. */
function isTaken(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(`rejoin-playground-${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null)
      return lock === null ? undefined : new Promise(() => undefined)
    })
  })
}

const key = 'rejoin-playground'

/** Undefined where the browser keeps nothing. */
function nameOfBrowser(): string | undefined {
  try {
    const name = localStorage.getItem(key) ?? randomName()
    localStorage.setItem(key, name)
    return /^[0-9a-f]{8}$/.test(name) ? name : undefined
  } catch {
    return undefined
  }
}

function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

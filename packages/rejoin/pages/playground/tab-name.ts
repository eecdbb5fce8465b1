/**
 * A name for this tab, which gives it a channel and connections of its own. A browser reuses its names: with a new name for each
 * visit, every visit would leave a channel in the log. A lock tells which names other tabs have.
 */
export async function takeTabName(): Promise<string> {
  const browser = nameOfBrowser()
  // Browsers give locks only to pages from https and localhost.
  if (!browser || !navigator.locks) return randomName()
  for (let number = 0; number < mostTabs; number += 1) {
    const name = `${browser}${number}`
    if (await isTaken(name)) return name
  }
  return randomName()
}

const mostTabs = 10

/** Whether this page got the lock on a name. The page holds the lock for as long as it is open. */
function isTaken(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(`rejoin-playground-${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null)
      return lock === null ? undefined : new Promise(() => undefined)
    })
  })
}

const key = 'rejoin-playground'

/** The name that this browser keeps; undefined when the browser stores nothing. */
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

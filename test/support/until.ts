/** Waits until something has come to pass; throws when it has not within its time. */
export async function until(what: string, isSo: () => boolean, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs
  while (!isSo()) {
    if (performance.now() > limit) throw new Error(`It has not come to pass within ${limitMs} ms that ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

import { afterEach, expect } from 'vitest'

/** What is rendered into the page and leaves it when the test is over. */
export const mounted: { unmount(): void }[] = []

/** Called by each file that renders. */
export function useDocument(): void {
  afterEach(() => {
    for (const it of mounted.splice(0)) it.unmount()
  })
}

/** An element of the page to render into. */
export function newRoot(): HTMLElement {
  const root = document.createElement('div')
  document.body.append(root)
  return root
}

/** Waits until an element shows this text. */
export async function shows(element: { readonly textContent: string | null }, text: string): Promise<void> {
  await expect.poll(() => element.textContent, { interval: 5 }).toBe(text)
}

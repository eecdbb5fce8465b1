import { createElement, type ReactNode, StrictMode } from 'react'
import { mounted, newRoot } from './document.ts'

/** Renders into the page until the test is over. React looks for a page when it is loaded, so it is loaded here. */
export async function render(node: ReactNode) {
  const { createRoot } = await import('react-dom/client')
  const element = newRoot()
  const root = createRoot(element)
  root.render(node)
  mounted.push(root)
  return { element, render: (next: ReactNode) => root.render(next), unmount: () => root.unmount() }
}

/** The same as React does it for developers: each component is mounted, unmounted and mounted again. */
export function renderStrictly(node: ReactNode) {
  return render(createElement(StrictMode, null, node))
}

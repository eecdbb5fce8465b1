// Makes a page of the process, for frameworks to render into. They look for it when they are loaded, so that this comes first
// (vitest.config.ts); and it stays, as React goes on working in it when a test is over. The files of one worker share the page.
import { Window } from 'happy-dom'

if (!('window' in globalThis)) {
  const window = new Window({ url: 'http://127.0.0.1/' })
  const { document, navigator, Element, HTMLElement, SVGElement, Node, ShadowRoot, customElements, CustomEvent } =
    window
  Object.assign(globalThis, {
    ...{ window, document, navigator, Element, HTMLElement, SVGElement, Node, ShadowRoot, customElements, CustomEvent },
    MathMLElement: class {},
  })
}

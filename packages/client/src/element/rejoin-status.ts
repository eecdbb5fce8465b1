import { keyOf, type Source } from '../bindings/shared-streams.ts'
import { pressButton, type StatusWords, statusOf } from '../bindings/status.ts'
import { createStreamStore, type StreamStore } from '../bindings/stream-store.ts'
import type { Off } from '../handler-set.ts'

/**
 * `<rejoin-status src="/events/orders">` shows the connection of a stream, for pages without a framework. Give it the
 * URL of a stream, or set `source` to a stream that you have opened yourself. Include `@rejoin/client/status.css`, or
 * style its classes yourself.
 *
 * Dispatches `sign-in` when the user presses that button, and then connects. A listener that needs time passes its
 * promise to `event.detail.wait(promise)`.
 */
export class RejoinStatus extends elementClass() {
  static readonly observedAttributes = ['src']
  #source: Source
  #words: Partial<StatusWords> | undefined
  #store: StreamStore | undefined
  #off: Off | undefined
  #isAttached = false

  /** The stream that is shown, or its URL. */
  get source(): Source {
    return this.#source
  }

  set source(source: Source) {
    if (keyOf(source) === keyOf(this.#source)) return
    this.#source = source
    this.#store = undefined
    this.#show()
  }

  /** Words that replace the English ones. */
  get words(): Partial<StatusWords> | undefined {
    return this.#words
  }

  set words(words: Partial<StatusWords> | undefined) {
    this.#words = words
    this.#show()
  }

  attributeChangedCallback(_name: string, _before: string | null, value: string | null): void {
    this.source = value
  }

  connectedCallback(): void {
    this.#isAttached = true
    this.#show()
  }

  disconnectedCallback(): void {
    this.#isAttached = false
    this.#leave()
  }

  #show(): void {
    if (!this.#isAttached) return
    if (!this.#store) {
      this.#leave()
      this.#store = createStreamStore(this.#source, {}, false)
    }
    const store = this.#store
    this.#off ??= store.subscribe(() => this.#show())
    const connection = store.getSnapshot()
    const status = statusOf(connection, this.#words)
    this.classList.add('rejoin-status')
    this.dataset.status = status?.kind ?? 'none'
    if (!status) {
      this.replaceChildren()
      return
    }
    const [dot, text, spoken] = this.#spans()
    if (status.kind === 'live') dot.setAttribute('aria-label', status.text)
    else dot.removeAttribute('aria-label')
    dot.role = status.kind === 'live' ? 'img' : null
    text.textContent = status.text
    // Only on change, because a screen reader speaks every text that is set here.
    if (spoken.textContent !== status.spoken) spoken.textContent = status.spoken
    this.#setButton(status.button)
  }

  #spans(): [HTMLElement, HTMLElement, HTMLElement] {
    if (!this.firstChild) {
      for (const part of ['dot', 'text', 'spoken']) {
        const span = document.createElement('span')
        span.className = `rejoin-status-${part}`
        this.append(span)
      }
      this.children[1]?.setAttribute('aria-hidden', 'true')
      this.children[2]?.setAttribute('role', 'status')
    }
    return [...this.children] as [HTMLElement, HTMLElement, HTMLElement]
  }

  /** Keeps the button while there is one, whatever its text, so that it keeps the focus. */
  #setButton(label: string | undefined): void {
    const old = this.querySelector('button')
    if (!label) {
      old?.remove()
      return
    }
    if (old) {
      old.textContent = label
      return
    }
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = label
    button.onclick = () => void pressButton(this.#store!.getSnapshot(), () => this.#signIn())
    this.append(button)
  }

  #signIn(): Promise<unknown> {
    const waits: unknown[] = []
    const wait = (promise: unknown) => void waits.push(promise)
    this.dispatchEvent(new CustomEvent('sign-in', { bubbles: true, detail: { wait } }))
    return Promise.all(waits)
  }

  #leave(): void {
    this.#off?.()
    this.#off = undefined
  }
}

if (globalThis.customElements && !customElements.get('rejoin-status'))
  customElements.define('rejoin-status', RejoinStatus)

/** A server that loads this file has no `HTMLElement`, and defines no element. */
function elementClass(): typeof HTMLElement {
  return globalThis.HTMLElement ?? (class {} as typeof HTMLElement)
}

import type { EventSourceMessage } from '@microsoft/fetch-event-source'
import { type OutputChunk, rolldown } from 'rolldown'
import { beforeAll, describe } from 'vitest'
import { listenedTypes, type ThirdPartyClient, type Told } from '../services/third-party/client.ts'
import { eventSourceHabits, thirdPartyContract } from '../services/third-party/contract.ts'
import { sharedChromium } from './support/shared-chromium.ts'

// Clients of others that live in a browser, on the same runs as those of test/services.

const chromium = sharedChromium()
let fetchEventSourceScript: string

beforeAll(async () => {
  fetchEventSourceScript = await bundle('@microsoft/fetch-event-source')
}, 60_000)

describe.concurrent("Chromium's EventSource", () => {
  const client = inPage('EventSource', (url, types) => {
    const source = new EventSource(url)
    for (const type of types) source.addEventListener(type, ({ data }) => tell({ type, data }))
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) tellStopped()
    }
  })
  thirdPartyContract(client, eventSourceHabits)
})

describe.concurrent('@microsoft/fetch-event-source, as its README begins', () => {
  const client = inPage('fetch-event-source', (url) => {
    const { fetchEventSource } = thirdParty
    const onmessage = ({ event, data }: EventSourceMessage) => tell({ type: event || 'message', data })
    void fetchEventSource(url, { onmessage }).finally(tellStopped)
  })
  thirdPartyContract(client, {
    returnsAfterEnd: false,
    countsCutIds: true,
    at204: 'returns',
    at503: 'returns',
    unaskedMs: 1000,
    comments: 'as empty messages',
  })
})

// The code of docs/reference/clients.md.
describe.concurrent('@microsoft/fetch-event-source, as we advise', () => {
  const client = inPage('fetch-event-source', (url) => {
    const { fetchEventSource } = thirdParty
    let cursor = ''
    const finished = new AbortController()
    void fetchEventSource(url, {
      signal: finished.signal,
      fetch: (input, init) => {
        const headers = new Headers(init?.headers)
        headers.delete('Last-Event-ID')
        if (cursor !== '') headers.set('Last-Event-ID', cursor)
        return fetch(input, { ...init, headers })
      },
      async onopen({ status, statusText }) {
        if (status === 204) finished.abort()
        else if (status !== 200) throw new Error(statusText)
      },
      onmessage({ id, event, data }) {
        if (id !== '') cursor = id
        if (data !== '') tell({ type: event || 'message', data })
      },
      onclose() {
        throw new Error('The hub ended this stream, and we come back.')
      },
    }).finally(tellStopped)
  })
  thirdPartyContract(client, {
    returnsAfterEnd: true,
    countsCutIds: false,
    at204: 'stops',
    at503: 'returns',
    unaskedMs: 1000,
    comments: 'hidden',
  })
})

declare global {
  const thirdParty: typeof import('@microsoft/fetch-event-source')
  var tell: (told: Told) => void
  var tellStopped: () => void
}

/** A client that is opened in a page of the server's own origin, which no line that is cut keeps away. */
function inPage(name: string, read: (url: string, types: readonly string[]) => void): ThirdPartyClient {
  return {
    name,
    async open(url) {
      const told: Told[] = []
      let stopped = false
      const page = await chromium.tabs.newPage()
      // By the console: a function that Playwright exposed told nothing once, although the page had got every event.
      page.on('console', (line) => {
        if (line.type() !== 'debug') return
        const said = JSON.parse(line.text()) as Told | 'stopped'
        if (said === 'stopped') stopped = true
        else told.push(said)
      })
      const address = new URL('/page', url).href
      await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body: '' }))
      await page.goto(address)
      await page.unroute(address)
      await page.evaluate(fetchEventSourceScript)
      await page.evaluate(() => {
        globalThis.tell = (told) => console.debug(JSON.stringify(told))
        globalThis.tellStopped = () => console.debug(JSON.stringify('stopped'))
      })
      await page.evaluate(`(${read})(${JSON.stringify(url)}, ${JSON.stringify(listenedTypes)})`)
      return {
        told,
        get stopped() {
          return stopped
        },
        close: () => page.close(),
      }
    },
  }
}

async function bundle(name: string): Promise<string> {
  const build = await rolldown({ input: name, platform: 'browser', logLevel: 'warn' })
  const { output } = await build.generate({ format: 'iife', name: 'thirdParty' })
  await build.close()
  return (output[0] as OutputChunk).code
}

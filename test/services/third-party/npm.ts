import { EventSource as PackageEventSource } from 'eventsource'
import { createEventSource } from 'eventsource-client'
import { EventSource as UndiciEventSource } from 'undici'
import { listenedTypes, type ThirdPartyClient, type Told } from './client.ts'

export const eventsource: ThirdPartyClient = {
  name: 'eventsource',
  open: (url) => listenTo(new PackageEventSource(url)),
}

export const undici: ThirdPartyClient = {
  name: 'undici',
  open: (url) => listenTo(new UndiciEventSource(url)),
}

export const eventsourceClient: ThirdPartyClient = {
  name: 'eventsource-client',
  open(url) {
    const told: Told[] = []
    const source = createEventSource({
      url,
      onMessage: ({ event: type = 'message', data }) => void told.push({ type, data }),
    })
    return {
      told,
      get stopped() {
        return source.readyState === 'closed'
      },
      close: source.close,
    }
  },
}

/** What the classes of both packages have in common with a browser's. */
interface Source {
  readonly readyState: number
  addEventListener(type: string, listener: (event: { data: string }) => void): void
  close(): void
}

function listenTo(source: unknown) {
  const { addEventListener, close } = source as Source
  const told: Told[] = []
  for (const type of listenedTypes) {
    addEventListener.call(source, type, ({ data }) => void told.push({ type, data }))
  }
  return {
    told,
    get stopped() {
      return (source as Source).readyState === 2
    },
    close: () => close.call(source),
  }
}

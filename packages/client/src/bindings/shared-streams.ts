import type { EventStream } from '../event-stream.ts'
import type { Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import { connect } from '../stream.ts'
import type { StoreOptions } from './stream-store.ts'

/** Where a component reads: a URL, a stream that the caller opens and closes, or nowhere for now. */
export type Source = string | URL | AnyStream | null | undefined

/** A stream of any event types. */
export type AnyStream = Pick<EventStream, 'state' | 'reconnect' | 'close'> & { getSnapshot(): object }

/**
 * Joins the readers of a source. All components with the same URL share one stream, which closes a second after the
 * last component has left. So the stream stays open when one page replaces another, and when React's StrictMode mounts
 * a component twice.
 *
 * The stream opens when the current turn is over. A framework mounts children before their parents, so by then the
 * options of the whole page are known, whichever component has them.
 *
 * @param attach - called once the stream is there. `open` throws what `connect` throws.
 * @param from - the cursor of a component that returns. The component continues there; when the shared stream has moved
 * on, it gets a stream of its own.
 */
export function joinStream(
  source: NonNullable<Source>,
  options: StoreOptions,
  attach: Attach,
  from: string | null,
): Membership {
  const key = keyOf(source) as Key
  let shared = streams.get(key)
  if (!shared || (from !== null && shared.cursor() !== from)) {
    const isLeft = !shared?.isInUse()
    shared = newSharedStream(key, from)
    if (isLeft) streams.set(key, shared)
  }
  return shared.join(options, attach)
}

/** The stream of a source, if one is open already. */
export function streamOf(source: Source): EventStream | undefined {
  return givenStream(source) ?? streams.get(keyOf(source) as Key)?.stream()
}

/** Closes every shared stream, even one that is in use, so that each test begins without streams. */
export function closeStreams(): void {
  for (const shared of streams.values()) shared.close()
}

/** Sources with the same key share one stream. */
export function keyOf(source: Source): unknown {
  return (source as URL | null | undefined)?.href ?? source
}

export interface Membership {
  leave: Off
  /**
   * Takes over the options of a later rendering. Only credentials and `fetch` have an effect: `connect` reads them
   * again before each attempt. A `token` with another text is used at once, from the cursor.
   */
  renew(options: StoreOptions): void
}

type Key = string | EventStream

type Attach = (open: () => EventStream) => Off | undefined

interface SharedStream {
  stream(): EventStream | undefined
  cursor(): string | null | undefined
  isInUse(): boolean
  join(options: StoreOptions, attach: Attach): Membership
  close(): void
}

const streams = new Map<Key, SharedStream>()
const lingerMs = 1000

function newSharedStream(key: Key, from: string | null): SharedStream {
  const shared: ConnectOptions = {}
  let stream = givenStream(key)
  let members = 0
  let timer: unknown

  const it: SharedStream = {
    stream: () => stream,
    cursor: () => (stream ? stream.cursor : from),
    isInUse: () => members > 0,
    close,
    join(options, attach) {
      let off: Off | undefined
      let hasLeft = false
      members++
      clearTimeout(timer as number)
      renew(options)
      if (stream) begin()
      else queueMicrotask(begin)
      return {
        renew,
        leave() {
          hasLeft = true
          off?.()
          if (!--members) timer = setTimeout(close, lingerMs)
        },
      }

      function begin(): void {
        if (!hasLeft) off = attach(open)
      }
    },
  }
  return it

  function open(): EventStream {
    if (from) shared.from = from
    stream ??= connect(key as string, shared) as EventStream
    return stream
  }

  // `connect` would report the first four as unknown options.
  function renew({ reduce, initial, onEvent, onSync, ...options }: StoreOptions): void {
    const { token } = shared
    // A component that leaves an option out does not reset it for the others.
    for (const [name, value] of Object.entries(options))
      if (value !== undefined) shared[name as 'from'] = value as string
    if (shared.token !== token && typeof shared.token === 'string') stream?.reconnect()
  }

  function close(): void {
    if (stream !== key) stream?.close()
    if (streams.get(key) === it) streams.delete(key)
  }
}

function givenStream(source: Source): EventStream | undefined {
  return (source as Partial<EventStream> | null | undefined)?.getSnapshot && (source as EventStream)
}

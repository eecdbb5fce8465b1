import type { EventStream } from '../event-stream.ts'
import type { Off } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import { connect } from '../stream.ts'
import type { StoreOptions } from './stream-store.ts'

/** Where a component reads: a URL, a stream that somebody else opens and closes, or nowhere for now. */
export type Source = string | URL | AnyStream | null | undefined

/** A stream of whatever events. */
export type AnyStream = Pick<EventStream, 'state' | 'reconnect' | 'close'> & { getSnapshot(): object }

/**
 * Joins the readers of a source. All components with the same URL share one stream, which closes a second after the last of
 * them has left: a page that is replaced by another, and a component that React's StrictMode mounts twice, keep it.
 *
 * The stream opens when the current turn is over. A framework mounts children before their parents, so that the options of
 * the whole page are known by then, whichever component has them.
 *
 * @param attach - called once the stream is there. `open` throws what `connect` throws.
 * @param from - the cursor of a component that returns. It continues there, with a stream of its own when the shared one has
 * moved on.
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

/** The stream of a source, if there is one already. */
export function streamOf(source: Source): EventStream | undefined {
  return givenStream(source) ?? streams.get(keyOf(source) as Key)?.stream()
}

/** Closes every stream that components share, whoever uses it: for tests, of which each begins with none. */
export function closeStreams(): void {
  for (const shared of streams.values()) shared.close()
}

/** Two sources with the same key are one. */
export function keyOf(source: Source): unknown {
  return (source as URL | null | undefined)?.href ?? source
}

export interface Membership {
  leave: Off
  /**
   * Takes the options of a later rendering over, as far as `connect` reads them again before each attempt: credentials and
   * `fetch`. A token that is another text is used at once, from the cursor.
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

  // Without what is not for `connect`, which would report it.
  function renew({ reduce, initial, onEvent, onSync, ...options }: StoreOptions): void {
    const { token } = shared
    // A component that leaves an option out has no opinion on it.
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

import type { EventStream } from '../event-stream.ts'
import { identityOf, trustIn } from './identity.ts'
import { forgetClosed } from './opening.ts'
import { createStreamGroup, type Member, type StreamGroup } from './stream-group.ts'
import type { StoreOptions } from './stream-store.ts'

/** Where a component reads: a URL, a stream that the caller opens and closes, or nowhere for now. */
export type Source = string | URL | AnyStream | null | undefined

/** A stream of any event types. */
export type AnyStream = Pick<EventStream, 'state' | 'reconnect' | 'close'> & { getSnapshot(): object }

/**
 * Lets a component read a source. Components with the same URL and the same user share one stream.
 *
 * Who shares is decided when the current turn is over. A framework mounts children before their parents, so by then the
 * options of the whole page are known, whichever component has them. And one page may have replaced another, or React's
 * StrictMode may have mounted a component twice.
 *
 * The stream closes with its last component. It never goes to another user:
 *
 * - Where the options show who reads, each user has a stream.
 * - Where they do not, or not for certain, components that are there at the same time share. A component that comes when
 *   the last one has left may be the next user's, and gets a new stream. A component that came after the connection was
 *   made goes on at its cursor when the others have left, on a new stream. When it is rejected there, it starts anew.
 * - A component without credentials reads with those of the others. When they leave, it starts anew without them.
 */
export function join(source: NonNullable<Source>, member: Member): Leave {
  const url = urlOf(source) as string | EventStream
  const page = pages.get(url) ?? { url, members: new Set(), groups: new Map(), isDue: false }
  pages.set(url, page)
  member.isIn = true
  page.members.add(member)
  settleLater(page)
  return (now) => {
    member.isIn = false
    if (!page.members.delete(member)) return
    if (now) settle(page)
    else settleLater(page)
  }
}

/** @param now - closes a stream that nobody else reads before this returns, so that the member cannot come back to it */
export type Leave = (now?: boolean) => void

/** The stream that a component would share, if there is one already. */
export function streamOf(source: Source, options: StoreOptions): EventStream | undefined {
  const page = pages.get(urlOf(source))
  return givenStream(source) ?? page?.groups.get(userOf(options, lastUser(page)))?.stream()
}

/** Closes every shared stream, even one that is in use, so that each test begins without streams. */
export function closeStreams(): void {
  for (const { members, groups } of pages.values()) {
    members.clear()
    for (const group of groups.values()) group.close()
  }
  pages.clear()
  forgetClosed()
}

/** What a component reads. With another key, it starts anew. */
export function keyOf(source: Source, options: StoreOptions = {}): unknown {
  const url = urlOf(source)
  // Who has no credentials any more has signed out.
  return typeof url === 'string' ? `${trustIn(options)} ${identityOf(options) ?? ''} ${url}` : url
}

/** All that read one URL, or one stream of the caller. */
interface Page {
  readonly url: string | EventStream
  readonly members: Set<Member>
  /** By the user, whose name is empty where the options do not show who reads. */
  readonly groups: Map<string, StreamGroup>
  isDue: boolean
}

const pages = new Map<unknown, Page>()

/** One URL may be written in several ways. */
function urlOf(source: Source): unknown {
  const base = globalThis.document?.baseURI
  const isStream = !source || givenStream(source)
  return !isStream && URL.canParse(source as string, base) ? new URL(source as string, base).href : source
}

function settleLater(page: Page): void {
  if (page.isDue) return
  page.isDue = true
  queueMicrotask(() => settle(page))
}

function settle(page: Page): void {
  const { url, members, groups } = page
  page.isDue = false
  const last = lastUser(page)
  const before = new Map(groups)
  const wanted = new Map([...members].map((member) => [member, userOf(member.options, last)]))
  for (const [user, group] of groups) {
    group.retain((member) => wanted.get(member) === user)
    const joining = [...members].filter((member) => member.group !== group && wanted.get(member) === user)
    if (group.isFor(joining)) continue
    group.close()
    groups.delete(user)
  }
  for (const [member, user] of wanted) {
    if (member.group) continue
    const restart = () => {
      groups.get(user)?.close()
      groups.delete(user)
      settleLater(page)
    }
    const group = groups.get(user) ?? createStreamGroup(url, givenStream(url), restart, before.has(user))
    groups.set(user, group)
    group.add(member)
  }
  for (const group of groups.values()) group.start()
  if (!members.size && pages.get(url) === page) pages.delete(url)
}

/**
 * The user with whose stream a component reads.
 *
 * @param last - the user of a component without credentials
 */
function userOf(options: StoreOptions, last: string): string {
  return identityOf(options) ?? (trustIn(options) ? '' : last)
}

/** Whom the component names that came last, of those that name a user. */
function lastUser({ url, members }: Page): string {
  if (givenStream(url)) return ''
  return [...members].map(({ options }) => identityOf(options)).findLast((user) => user !== undefined) ?? ''
}

function givenStream(source: Source): EventStream | undefined {
  return (source as Partial<EventStream> | null | undefined)?.getSnapshot && (source as EventStream)
}

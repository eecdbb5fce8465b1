import { Agent, get, request } from 'node:http'
import { type Resets, resetTurns } from './resets.ts'
import { startTurnsProcess, type TurnsProcess, type TurnsProcessOptions } from './turns-process.ts'

/**
 * Sends every request that `rejoin serve` knows, with all kinds of parameters, to a server with many channels, and asks after
 * each how long the longest turn of its event loop was. Then crowds of readers that are dear to serve, all at once, with a
 * publisher beside them, and HTTP/2 requests that are reset.
 */
export async function runTurns({ onProgress, ...options }: TurnsOptions): Promise<TurnsOutcome> {
  const server = await startTurnsProcess(options)
  try {
    const turns: Turn[] = []
    const all = requestsTo(server)
    for (const [index, asked] of all.entries()) {
      const ms = await server.longestTurn(() => send(asked))
      turns.push({ what: `${asked.method ?? 'GET'} ${shown(asked)}`, ms })
      if (index % 50 === 49) onProgress?.(`${index + 1} of ${all.length} requests`)
    }
    const crowds: Crowd[] = []
    for (const [what, path] of crowdsAt(server)) {
      crowds.push(await crowd(server, what, path))
      onProgress?.(`${crowdSize} × ${what}`)
    }
    const resets = await resetTurns(server, (task) => publishP99While(server, task))
    return { turns: turns.sort((a, b) => b.ms - a.ms), crowds, resets }
  } finally {
    await server.kill()
  }
}

export interface TurnsOptions extends TurnsProcessOptions {
  onProgress?(text: string): void
}

export interface TurnsOutcome {
  /** The longest first. */
  readonly turns: readonly Turn[]
  readonly crowds: readonly Crowd[]
  readonly resets: Resets
}

export interface Turn {
  readonly what: string
  readonly ms: number
}

export interface Crowd extends Turn {
  /** Until the last of them had been greeted, in ms. */
  readonly allMs: number
  /** What it took of the server's processor, with the publishes. */
  readonly cpuMs: number
  /** Of publishes meanwhile, in ms. */
  readonly publishP99Ms: number
  /** Of publishes right before, with nobody else there: what the machine makes of them. */
  readonly aloneP99Ms: number
}

interface Asked {
  readonly url: string
  readonly method?: 'GET' | 'POST'
  readonly body?: string
}

function requestsTo({ url, adminUrl, limitedUrl, ids }: TurnsProcess): Asked[] {
  const [first = '', middle = '', last = ''] = ids
  const hundred = Array.from({ length: 99 }, (_, index) => `channel=orders/${3 * index + 1}`).join('&')
  const patterns = Array.from({ length: 99 }, (_, index) => `channel=nothing/${index}/*`).join('&')
  const names = ['full', '*', 'orders/*', 'nothing/*', 'kept/*', `full?${hundred}`, `orders/*?${patterns}`]
  const cursors = [`lastEventId=${first}`, `lastEventId=${middle}`, `lastEventId=${last}`, 'lastEventId=earliest']
  const bad = ['lastEventId=nonsense', `lastEventId=7${last.slice(1)}`]
  const starts = ['', 'replay=0', 'replay=1', 'replay=700', 'replay=999999999', ...cursors, ...bad]
  const filters = ['', 'type=none', 'show=envelope&clientId=c&attempt=1', 'added=full&heartbeat=event&reject=status']
  const asked: Asked[] = []
  for (const name of names) {
    for (const start of starts) {
      const query = (...parts: string[]) =>
        [name, ...parts.filter(Boolean)].join('&').replace('&', name.includes('?') ? '&' : '?')
      // Each start with each filter would be four times as many requests, which differ in nothing but the pair.
      const filter = filters[asked.length % filters.length] as string
      asked.push({ url: `${url}/poll/${query(start, filter, 'waitMs=0')}` })
      asked.push({ url: `${url}/events/${query(start, asked.length % 2 === 0 ? 'type=none' : '')}` })
      if (start.startsWith('last')) asked.push({ url: `${limitedUrl}/poll/${query(start, 'type=none', 'waitMs=0')}` })
    }
  }
  for (const name of ['full', '*', 'orders/*', 'nothing/*', 'orders/1']) {
    asked.push({ url: `${adminUrl}/debug/sse-state?channel=${name}` })
  }
  for (const page of ['', 'limit=1000', 'prefix=orders/&limit=1000', 'after=orders/5&limit=1000', 'prefix=nothing']) {
    asked.push({ url: `${adminUrl}/admin/channels?${page}` })
  }
  for (const path of ['metrics', 'openapi.json', 'admin/connections', 'admin/maintenance', 'healthz', 'readyz']) {
    asked.push({ url: `${adminUrl}/${path}` })
  }
  const post = (path: string, body: unknown, at = url) =>
    asked.push({ url: `${at}/${path}`, method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
  const batch = (channelOf: (index: number) => string, more: (index: number) => object = () => ({})) =>
    Array.from({ length: 1000 }, (_, index) => ({ channel: channelOf(index), data: index, ...more(index) }))
  post('publish/orders/1', 'x'.repeat(200_000))
  post(
    'publish',
    batch((index) => `orders/${3 * index + 1}`),
  )
  post(
    'publish',
    batch((index) => `new/${index}`),
  )
  post(
    'publish',
    batch(() => 'full'),
  )
  post(
    'publish',
    batch(
      () => 'full',
      () => ({ live: true }),
    ),
  )
  const keyed = [
    batch((index) => `keys/${index}`),
    batch(
      () => 'keys/all',
      (index) => ({ key: `${index}` }),
    ),
  ]
  // The second time each key is there, and has to be looked up.
  for (const events of [...keyed, ...keyed]) post('publish', events, limitedUrl)
  post('admin/invalidate', { channel: 'keys/all' }, adminUrl)
  post('publish/kept/1?key=other', 'x')
  post('end/orders/2', '')
  post('end/nothing', '')
  post('admin/invalidate', { channel: 'full' }, adminUrl)
  post('admin/revoke', { subject: 'nobody' }, adminUrl)
  post('admin/disconnect', { subject: 'nobody' }, adminUrl)
  // What was declared void is a gap for all who had it.
  for (const name of ['full', '*', 'orders/*']) asked.push({ url: `${url}/poll/${name}?lastEventId=${first}&waitMs=0` })
  return asked
}

function crowdsAt({ ids }: TurnsProcess): [what: string, path: string][] {
  return [
    ['bad cursors', '*?lastEventId=nonsense'],
    ['expired cursors', `*?lastEventId=${ids[0]}`],
    ['replay=1', '*?replay=1'],
    ['replay=1 of one channel', 'full?replay=1'],
    ['all of one channel, filtered', 'full?replay=999999999&type=none'],
  ]
}

const crowdSize = 50
// What takes longer is like its first second.
const longestReadMs = 1000
const quietMs = 100

/** Resolves when it is answered; for a stream, when nothing more has come for a while; and after a second in any case. */
function send({ url, method = 'GET', body }: Asked): Promise<void> {
  return new Promise((resolve, reject) => {
    let quiet: NodeJS.Timeout | undefined
    const done = () => {
      clearTimeout(longest)
      clearTimeout(quiet)
      sent.destroy()
      resolve()
    }
    const longest = setTimeout(done, longestReadMs)
    const headers = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const sent = request(url, { method, headers }, (response) => {
      if ((response.statusCode ?? 500) >= 500) reject(new Error(`${response.statusCode}: ${url}`))
      const isStream = response.headers['content-type']?.startsWith('text/event-stream')
      response.on('data', () => {
        clearTimeout(quiet)
        if (isStream) quiet = setTimeout(done, quietMs)
      })
      response.on('end', done)
      response.on('error', done)
    })
    // Also when it was given up here.
    sent.on('error', done)
    sent.end(body)
  })
}

async function crowd(server: TurnsProcess, what: string, path: string): Promise<Crowd> {
  const aloneP99Ms = await publishP99While(server, async () => undefined)
  const before = await server.cpuMs()
  const started = performance.now()
  let [allMs, took] = [0, 0]
  const publishP99Ms = await publishP99While(server, async () => {
    await come(server, path)
    allMs = performance.now() - started
    took = (await server.cpuMs()) - before
  })
  // Once more for the turns: to measure them takes a core.
  const ms = await server.longestTurn(() => come(server, path))
  return { what: `${crowdSize} × ${what}`, ms, allMs, cpuMs: took, publishP99Ms, aloneP99Ms }
}

async function come(server: TurnsProcess, path: string): Promise<void> {
  await Promise.all(Array.from({ length: crowdSize }, () => greeted(`${server.url}/events/${path}`)))
}

/** One publish after the other, for as long as a task takes, and a hundred of them at least. */
async function publishP99While(server: TurnsProcess, task: () => Promise<void>): Promise<number> {
  const tookMs: number[] = []
  let isOver = false
  const agent = new Agent({ keepAlive: true })
  const publisher = async () => {
    while (!isOver || tookMs.length < 100) {
      const started = performance.now()
      await publish(`${server.url}/publish/orders/1`, agent)
      tookMs.push(performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const publishing = publisher()
  // Together, so that what goes wrong first is told first.
  await Promise.all([
    publishing,
    task().finally(() => {
      isOver = true
    }),
  ])
  agent.destroy()
  return tookMs.sort((a, b) => a - b)[Math.ceil(tookMs.length * 0.99) - 1] as number
}

/** Over one connection, as publishers do. */
function publish(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent }, (response) => response.resume().on('end', resolve))
    sent.on('error', reject).end('1')
  })
}

/** Resolves when a stream knows where it stands: it has been greeted, and told of the gap if there is one. */
function greeted(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // Each over a connection of its own: the server may just be closing one that was used before and lay idle.
    get(url, { agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(0, 100_000)
        if (!/"resumed":true/.test(text) && !/"requested":null/.test(text) && !text.includes('sync-required')) return
        response.destroy()
        resolve()
      })
      response.on('error', () => undefined)
      response.on('end', () => reject(new Error(`The stream ended: ${text}`)))
    }).on('error', reject)
  })
}

function shown({ url, body }: Asked): string {
  const path = url.replace(/^http:\/\/[^/]+/, '').replace(/(channel=[^&]+&?){5,}/, 'channel=… × 99')
  return body === undefined ? path : `${path} (${body.length} bytes)`
}

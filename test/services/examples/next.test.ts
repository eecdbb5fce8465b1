import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type EventStream } from '@rejoin/client'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchChromium } from '../../browser/support/chromium.ts'
import { root } from '../../support/paths.ts'
import { readText } from '../../support/repository.ts'
import { installNext } from '../runtimes/next-install.ts'
import { type Runtime, startRuntime } from '../runtimes/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'rejoin-next-example-'))
const program = join(folder, 'node_modules/next/dist/bin/next')
const env = { NEXT_TELEMETRY_DISABLED: '1' }
let next: Runtime | undefined
let address: string

beforeAll(async () => {
  cpSync(`${root}examples/next`, folder, { recursive: true })
  installNext(folder)
  execFileSync(process.execPath, [program, 'build'], { cwd: folder, env: { ...process.env, ...env }, stdio: 'ignore' })
}, 600_000)

afterAll(async () => {
  await next?.close()
  rmSync(folder, { recursive: true })
}, 60_000)

async function serve(command: 'dev' | 'start'): Promise<Runtime> {
  const args = [program, command, '--port', '0', '--hostname', '127.0.0.1']
  next = await startRuntime(process.execPath, args, { folder, env })
  address = await next.printed(/Local: +(http:\/\/\S+:\d+)/)
  return next
}

test('examples/next, built and started, ends while a stream is open, and the next process goes on from its events', async () => {
  const old = await serve('start')
  const { stream, ids } = open()
  await expect.poll(() => stream.cursor, patience).not.toBeNull()
  const cursor = stream.cursor as string
  const { id } = await cheer()
  await expect.poll(() => ids, patience).toEqual([id])
  const stopped = old.stop()
  // Both run for a while, as in a deployment.
  await serve('start')
  const after = await cheer()
  await stopped
  const late = open(cursor)
  await expect.poll(() => late.ids, patience).toEqual([id, after.id])
  await Promise.all([stream.close(), late.stream.close()])
  await next?.stop()
}, 300_000)

test('examples/next ends on SIGTERM although a client goes on using its connection, each time, and the next process starts at once', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  for (let deployment = 1; deployment <= 2; deployment += 1) {
    const server = await serve('start')
    const { stream } = open()
    await expect.poll(() => stream.state.state, patience).toBe('connected')
    const use = useWithoutPause(`${address}/cheer`, agent)
    await expect.poll(() => use.answers, patience).toContain(200)
    await server.stop()
    use.end()
    await stream.close()
  }
}, 120_000)

test('docs/guides/load-then-follow.md shows the components of examples/next', () => {
  for (const file of ['app/page.jsx', 'app/cheers.jsx']) {
    expect(readText('docs/guides/load-then-follow.md')).toContain(`// ${file}\n${readText(`examples/next/${file}`)}`)
  }
})

test('examples/next renders its state on the server, and a page follows from there', async () => {
  const server = await serve('start')
  await cheer()
  const total = /(\d+)(?:<!-- -->)? cheers/.exec(await (await fetch(address)).text())?.[1]
  const browser = await launchChromium()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  // While the page has its state and not yet its stream.
  await page.route('**/events/**', async (route) => {
    await cheer()
    await route.continue()
  })
  await page.goto(address)
  const shown = page.locator('p')
  await expect.poll(() => shown.textContent(), patience).toBe(`${Number(total) + 1} cheers, connected`)
  await page.getByRole('button').click()
  await expect.poll(() => shown.textContent(), patience).toBe(`${Number(total) + 2} cheers, connected`)
  await page.close()
  await server.stop()
}, 120_000)

test('examples/next keeps its hub, with its readers and its past, when a file is changed and loaded again', async () => {
  await serve('dev')
  expect(await (await fetch(address)).text()).toContain('Cheer')
  const { stream, ids } = open()
  await expect.poll(() => stream.cursor, patience).not.toBeNull()
  const start = stream.cursor
  const before = await cheer()
  await expect.poll(() => ids, patience).toEqual([before.id])

  appendFileSync(join(folder, 'hub.js'), '\nexport const changed = true\n')
  appendFileSync(join(folder, 'app/cheer/route.js'), loadedAgain)
  await expect.poll(async () => (await fetch(`${address}/cheer`)).text(), patience).toBe('loaded again')

  const after = await cheer()
  await expect.poll(() => ids, patience).toEqual([before.id, after.id])
  const late = open(start as string)
  await expect.poll(() => late.ids, patience).toEqual([before.id, after.id])
  expect([stream, late.stream].map(({ state }) => state.state)).toEqual(['connected', 'connected'])
})

const loadedAgain = `
import { changed } from '../../hub.js'
export const GET = () => new Response(changed ? 'loaded again' : '')
`

// The first request of each route compiles it.
const patience = { timeout: 60_000 }

/** Requests one after the other on one connection, as of a proxy with steady traffic. */
function useWithoutPause(url: string, agent: Agent): { answers: (number | undefined)[]; end(): void } {
  const answers: (number | undefined)[] = []
  let isOver = false
  function ask(): void {
    if (isOver) return
    const asked = request(url, { method: 'POST', agent }, (response) => {
      answers.push(response.statusCode)
      response.resume().on('end', ask)
    })
    asked.on('error', () => setTimeout(ask, 50)).end()
  }
  ask()
  return {
    answers,
    end() {
      isOver = true
    },
  }
}

async function cheer(): Promise<{ id: string }> {
  return (await fetch(`${address}/cheer`, { method: 'POST' })).json()
}

function open(from?: string): { stream: EventStream; ids: string[] } {
  const ids: string[] = []
  const stream = connect(`${address}/events/cheers`, { from: from ?? null })
  stream.on('cheer', ({ id }) => ids.push(id))
  stream.onSync(({ reason }) => ids.push(reason))
  onTestFinished(() => stream.close())
  return { stream, ids }
}

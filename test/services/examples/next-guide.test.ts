import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { connect, type EventStream } from '@rejoin/client'
import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { guideBlocks } from '../../package/guide-blocks.ts'
import { root } from '../../support/paths.ts'
import { installNext } from '../runtimes/next-install.ts'
import { type Runtime, startRuntime } from '../runtimes/process.ts'

// The three files that docs/guides/adapters.md prints for Next.js, and nothing else of ours: an application as its readers make it.
const folder = mkdtempSync(join(tmpdir(), 'rejoin-next-guide-'))
const program = join(folder, 'node_modules/next/dist/bin/next')
const env = { NEXT_TELEMETRY_DISABLED: '1' }

beforeAll(() => {
  const files = guideBlocks().flatMap(({ page, code }) => {
    const [, path] = /^\/\/ ((?:hub|app\/[^\s]+)\.ts)\b/.exec(code) ?? []
    return page === 'adapters.md' && path ? [{ path, code }] : []
  })
  expect(files.map(({ path }) => path)).toEqual([
    'hub.ts',
    'app/events/[...channel]/route.ts',
    'app/publish/[...channel]/route.ts',
  ])
  for (const { path, code } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), code)
  }
  installNext(folder)
  // What `create-next-app` installs besides. Without it, Next.js would call npm.
  for (const name of ['typescript', '@typescript', '@types/node', 'undici-types', '@types/react', 'csstype']) {
    cpSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true, dereference: true })
  }
  execFileSync(process.execPath, [program, 'build'], { cwd: folder, env: { ...process.env, ...env }, stdio: 'ignore' })
}, 600_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }), 60_000)

test('next start ends on SIGTERM with an open stream, and the next process serves the folder from its first request', async () => {
  const old = await serve('start')
  const { stream, got } = open(old.address)
  await expect.poll(() => stream.cursor, patience).not.toBeNull()
  const start = stream.cursor as string
  expect(await publish(old.address, 'first')).toBe(201)
  await expect.poll(() => got, patience).toEqual(['first'])
  const ended = old.stop()
  // Both run for a while, as in a deployment. The first request waits until the folder is free.
  const { address } = await serve('start')
  expect(await publish(address, 'second')).toBe(201)
  await ended
  const late = open(address, start)
  await expect.poll(() => late.got, patience).toEqual(['first', 'second'])
}, 300_000)

test('a folder that another process holds for longer than the wait answers 503, and opens at the first request after that', async () => {
  const holder = await createHub({ log: lmdbLog(join(folder, '.rejoin')) })
  onTestFinished(() => holder.close())
  const { address } = await serve('start')
  expect(await publish(address, 'too early')).toBe(503)
  await holder.close()
  expect(await publish(address, 'in time')).toBe(201)
}, 300_000)

test('next dev gives readers and publishers one hub, although their routes are compiled apart', async () => {
  const { address } = await serve('dev')
  const { stream, got } = open(address)
  await expect.poll(() => stream.state.state, patience).toBe('connected')
  expect(await publish(address, 'from the other route')).toBe(201)
  await expect.poll(() => got, patience).toEqual(['from the other route'])
}, 300_000)

// The first request of each route compiles it in development.
const patience = { timeout: 60_000 }

async function serve(command: 'dev' | 'start'): Promise<Runtime & { readonly address: string }> {
  const args = [program, command, '--port', '0', '--hostname', '127.0.0.1']
  const next = await startRuntime(process.execPath, args, { folder, env })
  onTestFinished(() => next.close())
  return { ...next, address: await next.printed(/Local: +(http:\/\/\S+:\d+)/) }
}

function open(address: string, from: string | null = null): { stream: EventStream; got: unknown[] } {
  const got: unknown[] = []
  const stream = connect(`${address}/events/demo`, { from })
  stream.on('message', ({ data }) => got.push(data))
  stream.onSync(({ reason }) => got.push(reason))
  onTestFinished(() => stream.close())
  return { stream, got }
}

async function publish(address: string, text: string): Promise<number> {
  const { status } = await fetch(`${address}/publish/demo`, { method: 'POST', body: text })
  return status
}

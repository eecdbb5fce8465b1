import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { build as esbuild } from 'esbuild'
import { build as vite } from 'vite'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import webpack from 'webpack'
import { type Command, startCommand } from '../support/command.ts'
import { root } from '../support/paths.ts'
import { readText } from '../support/repository.ts'
import { type PackedProject, packedProject } from './packed-project.ts'
import { readmeCode, readmeCommands } from './readme-code.ts'

const run = promisify(execFile)

/** What `npx tsx` does, in a process that gets our signals: npx does not pass them on. */
const tsx = [process.execPath, '--import', 'tsx'] as const

/** The port that the README uses, in the server's code as in the client's. */
const portOfReadme = /\b3000\b/g

let project: PackedProject
let port: number
const running: Command[] = []

beforeAll(async () => {
  project = await packedProject(readmeCommands())
  port = await freePort()
  for (const [name, code] of readmeCode()) await write(name, code.replaceAll(portOfReadme, String(port)))
  await write('reader.js', readerCode)
})

afterEach(() => Promise.all(running.splice(0).map((program) => program.stop())))
afterAll(() => project.remove())

describe('the README', () => {
  test('has a server and a client', () => {
    expect([...readmeCode().keys()]).toEqual(expect.arrayContaining(['server.ts', 'client.ts']))
  })

  test('has a server that runs as pasted, and what is published to it, the client prints', async () => {
    start(...tsx, 'server.ts')
    await answer(`http://127.0.0.1:${port}/`)
    const client = start(...tsx, 'client.ts')
    const printed = client.prints(/shipped/).then(() => true)
    // A fresh client is not told what came before it, and does not say when it is there: publish until it was heard.
    do await fetch(`http://127.0.0.1:${port}/orders/42/ship`, { method: 'POST' })
    while (!(await Promise.race([printed, setTimeout(100, false)])))
  })
})

describe('the installed program', () => {
  test('shows its help', async () => {
    const { stdout } = await run(join(project.folder, 'node_modules/.bin/rejoin'), ['--help'])
    expect(stdout).toContain('serve')
  })

  test('serves a stream, and ends when it is told to', async () => {
    const program = start(join(project.folder, 'node_modules/.bin/rejoin'), 'serve', '--port', '0')
    const [address] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
    expect((await fetch(`${address}/publish/orders/42`, { method: 'POST', body: '1' })).status).toBe(201)
    expect(await program.stop()).toBe(0)
  })
})

test('the program is installed for every folder by the command of the README, and keeps its events on the disk', async () => {
  const [command = ''] = /^npm install --global .*$/m.exec(readText('README.md')) ?? []
  const prefix = join(project.folder, 'global')
  const here = `${command.replace('--global', `--global --prefix ${prefix} --prefer-offline`)} --no-audit --no-fund`
  await run('sh', ['-ec', here], { cwd: join(project.folder, 'tarballs') })
  const program = start(
    join(prefix, 'bin/rejoin'),
    'serve',
    '--port',
    '0',
    '--data',
    join(project.folder, 'global-data'),
  )
  const [address] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
  const published = await fetch(`${address}/publish/orders/42`, { method: 'POST', body: '1' })
  expect(await published.json()).toMatchObject({ durability: 'disk' })
  expect(await program.stop()).toBe(0)
})

describe('every entry of the packages', () => {
  test('is imported by an ES module', async () => {
    await write('all.mjs', project.entries.map((name) => `await import('${name}')\n`).join(''))
    await run(process.execPath, ['all.mjs'], { cwd: project.folder })
  })

  test('is required by a CommonJS module', async () => {
    await write('all.cjs', project.entries.map((name) => `require('${name}')\n`).join(''))
    await run(process.execPath, ['all.cjs'], { cwd: project.folder })
  })

  test('has a package.json that tools may read', async () => {
    await write('manifests.cjs', "console.log(require('@rejoin/hub/package.json').version)\n")
    const { stdout } = await run(process.execPath, ['manifests.cjs'], { cwd: project.folder })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/)
  })

  test.each([
    ['node16', 'all.mts'],
    ['nodenext', 'all.mts'],
    ['nodenext', 'all.cts'],
    ['esnext', 'all.ts'],
  ])('compiles with "module": "%s" in %s', async (module, file) => {
    await writeImports(file)
    expect(await compile(module, [file, ...(module === 'esnext' ? [] : readmeCode().keys())])).toBe('')
  })

  test('compiles for Node without the types of the DOM, where no page is needed', async () => {
    const code = `import { connect } from '@rejoin/client'
import { createPublisher } from '@rejoin/client/publisher'

connect('http://127.0.0.1/events/a', { headers: { a: 'b' }, credentials: 'include', token: () => 'mine' })
createPublisher('http://127.0.0.1/publish', { headers: async () => new Headers() })
`
    await write('without-dom.mts', code)
    expect(await compile('nodenext', ['without-dom.mts'], { lib: ['ES2023'], skipLibCheck: false })).toBe('')
  })

  test.each(['esnext', 'nodenext'])('compiles in the strictest project, with "module": "%s"', async (module) => {
    const strictest = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false }
    await write('strictest.mts', strictCode)
    expect(await compile(module, ['strictest.mts'], { ...strictest, verbatimModuleSyntax: true })).toBe('')
  })

  test('is rejected by TypeScript in CommonJS with "module": "node16", as their READMEs say', async () => {
    await writeImports('all.cts')
    const complaints = await compile('node16', ['all.cts'])
    expect(new Set(complaints.match(/TS\d+/g))).toEqual(new Set(['TS1479']))
  })
})

test('the installed packages test a page in one process: a cut, and what was missed', async () => {
  await write('testing.mjs', testCode)
  const { stdout } = await run(process.execPath, ['testing.mjs'], { cwd: project.folder })
  expect(stdout).toBe('connected\nbackoff\nconnected [ 1, 2 ]\n')
})

const testCode = `import { connect } from '@rejoin/client'
import { attachTo } from '@rejoin/client/testing'
import { createTestHub } from '@rejoin/hub/testing'

const hub = attachTo(await createTestHub())
const stream = connect('http://shop.example/events/orders', { token: () => 'mine' })
const events = []
stream.on('*', ({ data }) => events.push(data))
await hub.publish('orders', { data: 1 })
console.log(stream.state.state)
await hub.cut()
await hub.publish('orders', { data: 2 })
console.log(stream.state.state)
await hub.heal()
await hub.advance(60_000)
console.log(stream.state.state, events)
await hub.close()
`

describe('a page that is bundled by', () => {
  test('Vite reads events, with the parts that load later', async () => {
    const outDir = join(project.folder, 'out/vite')
    await vite({
      ...{ root: project.folder, configFile: false, logLevel: 'error' },
      build: {
        ...{ outDir, modulePreload: false },
        rolldownOptions: {
          ...{ input: join(project.folder, 'reader.js'), preserveEntrySignatures: 'strict' },
          output: { entryFileNames: 'reader.js' },
        },
      },
    })
    await readsWith(join(outDir, 'reader.js'))
  })

  test('esbuild reads events, with the parts that load later', async () => {
    const outdir = join(project.folder, 'out/esbuild')
    await esbuild({
      ...{ entryPoints: [join(project.folder, 'reader.js')], outdir, logLevel: 'error' },
      ...{ bundle: true, splitting: true, minify: true, format: 'esm' },
    })
    await readsWith(join(outdir, 'reader.js'))
  })

  test('webpack reads events, with the parts that load later', async () => {
    const path = join(project.folder, 'out/webpack')
    const compiler = webpack({
      ...{ mode: 'production', context: project.folder, entry: './reader.js', target: ['web', 'es2022'] },
      output: { path, filename: 'reader.js', module: true, library: { type: 'module' } },
      experiments: { outputModule: true },
    })
    const stats = await promisify(compiler.run.bind(compiler))()
    expect(stats?.toJson({ all: false, errors: true, warnings: true })).toMatchObject({ errors: [], warnings: [] })
    await promisify(compiler.close.bind(compiler))()
    await readsWith(join(path, 'reader.js'))
  })
})

test('a server that esbuild bundles has the script for Redis in its one file', async () => {
  await write('server-of-redis.js', "export { redisLog } from '@rejoin/hub/redis'\n")
  const outfile = join(project.folder, 'out/server-of-redis.mjs')
  await esbuild({
    ...{ entryPoints: [join(project.folder, 'server-of-redis.js')], outfile, logLevel: 'error' },
    ...{ bundle: true, platform: 'node', format: 'esm', external: ['ioredis', 'redis'] },
  })
  const { redisLog } = await import(/* @vite-ignore */ pathToFileURL(outfile).href)
  expect(redisLog('redis://127.0.0.1').name).toBe('redis')
})

test('the client in one file reads events, and loads nothing else', async () => {
  const file = join(project.folder, 'node_modules/@rejoin/client/dist/standalone.js')
  const code = await readFile(file, 'utf8')
  expect(code.match(/\bfrom\s*["'][^"']+["']|\bimport\s*\(?\s*["'`]/g)).toBeNull()
  await mkdir(join(project.folder, 'out'), { recursive: true })
  await write('out/standalone.js', code)
  await write('out/page.js', readerCode.replace("'@rejoin/client'", "'./standalone.js'"))
  await readsWith(join(project.folder, 'out/page.js'))
})

/** What the bundlers are given: it reads by both ways, of which one is loaded when it is asked for. */
const readerCode = `import { connect } from '@rejoin/client'

export function firstEvent(url, transport) {
  const stream = connect(url, { transports: [transport], from: 'earliest' })
  return new Promise((resolve) => stream.on('shipped', (event) => resolve(event.data))).finally(() => stream.close())
}
`

async function readsWith(file: string): Promise<void> {
  const { firstEvent } = await import(/* @vite-ignore */ pathToFileURL(file).href)
  const url = await hubWithAnEvent()
  expect(await firstEvent(url, 'fetch')).toEqual({ at: 1 })
  expect(await firstEvent(url, 'long-poll')).toEqual({ at: 1 })
}

async function hubWithAnEvent(): Promise<string> {
  const hub = await createHub({ log: memoryLog() })
  await hub.publish('orders', { type: 'shipped', data: { at: 1 } })
  const server = createServer(nodeHandler(hub)).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    await hub.close()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/events/orders`
}

function writeImports(file: string): Promise<void> {
  const imports = project.entries.map((name, index) => `import * as entry${index} from '${name}'\nentry${index}\n`)
  return write(file, imports.join(''))
}

/** A hub in `globalThis`, types by schemas in every place, and options that may be undefined. */
const strictCode = `
import { connect, type Schema } from '@rejoin/client'
import { createPublisher } from '@rejoin/client/publisher'
import { useEventStream as useReact } from '@rejoin/client/react'
import { useEventStream as useVue } from '@rejoin/client/vue'
import { type ChannelsOf, createHub, type TypedHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { nodeHandler } from '@rejoin/hub/node'
import { serve } from 'rejoin'

declare const maybe: { text?: string; number?: number }
declare const channels: { 'orders/:id': { shipped: Schema<{ at: number }>; lost: Schema<{ why: string }> } }
declare global { var shopHub: Promise<TypedHub<ChannelsOf<typeof channels>>> | undefined }
const { text, number } = maybe
const schemas = channels['orders/:id']

export function openHub() {
  const log = lmdbLog('./data', { window: { maxEvents: number }, maxBytes: number })
  globalThis.shopHub ??= createHub({ log, schemas: channels, retryMs: number, limits: { maxPerIp: number } })
  return globalThis.shopHub
}
export async function ship(): Promise<string> {
  const hub = await openHub()
  await hub.publish('orders/42', { type: 'shipped', data: { at: 1 }, key: text }, { idempotencyKey: text })
  // @ts-expect-error no such type
  await hub.publish('orders/42', { type: 'shiped', data: { at: 1 } })
  return hub.cursor(['orders/42', 'orders/*'])
}
nodeHandler(openHub, { authorize: () => ({ subject: 'ada', subscribe: ['*'], expiresAt: number }), basePath: text })
serve({ port: number, admin: { port: number, token: text }, tls: undefined })
connect('/events/a', { schemas, token: text, from: text }).on('shipped', ({ data }) => data.at.toFixed())
createPublisher('/publish', { schemas: channels, token: text }).publish('orders/42', { type: 'shipped', data: { at: 1 } })

export function useAt(): number {
  const options = { schemas, token: text, initial: 0 }
  const fromReact = useReact('/a', { ...options, reduce: (at, event) => (event.type === 'shipped' ? event.data.at : at) })
  const fromVue = useVue('/a', { ...options, reduce: (at, event) => (event.type === 'shipped' ? event.data.at : at) })
  return fromReact.value + fromVue.value.value
}
`

/** @returns what the compiler complains of */
async function compile(module: string, files: string[], others: object = {}): Promise<string> {
  const compilerOptions = {
    ...{ strict: true, target: 'ES2023', module, noEmit: true, jsx: 'react-jsx', skipLibCheck: true },
    ...(module === 'esnext' ? { moduleResolution: 'bundler' } : {}),
    // The packages have to bring their own types; those of Node and of the web are the user's, and come from here.
    ...{ lib: ['ES2024', 'DOM', 'DOM.AsyncIterable'], types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    ...others,
  }
  await write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', project.folder]).catch((failed) => failed)
  return stdout
}

/** Waits for a server that has just been started; the limit of the test bounds it. */
async function answer(url: string): Promise<void> {
  const answered = await fetch(url).then(
    () => true,
    () => false,
  )
  if (answered) return
  await setTimeout(50)
  await answer(url)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function write(file: string, text: string): Promise<void> {
  return writeFile(join(project.folder, file), text)
}

function start(command: string, ...args: string[]): Command {
  const program = startCommand(command, args, project.folder)
  running.push(program)
  return program
}

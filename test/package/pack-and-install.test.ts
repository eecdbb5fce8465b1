import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Program, startProgram } from './program.ts'
import { readmeCode } from './readme-code.ts'
import { packageFolders, root } from './repository.ts'

const run = promisify(execFile)

/** The port that the README uses, in the server's code as in the client's. */
const portOfReadme = /\b3000\b/g

let project: string
let port: number
const running: Program[] = []

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'rejoin-project-'))
  port = await freePort()
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }\n')
  await installPacked()
  await writeReadmeCode()
}, 120_000)

afterEach(() => Promise.all(running.splice(0).map((program) => program.stop())))
afterAll(() => rm(project, { recursive: true }))

test('the code of the README compiles in an empty project that has installed the packages', async () => {
  expect([...readmeCode().keys()]).toEqual(expect.arrayContaining(['server.ts', 'client.ts']))
  const { stdout } = await compileReadmeCode().catch((failed) => failed)
  expect(stdout).toBe('')
})

test('what is published to the server of the README, its client prints', async () => {
  await compileReadmeCode()
  start(process.execPath, [join(project, 'out/server.js')])
  await answer(`http://127.0.0.1:${port}/`)
  const client = start(process.execPath, [join(project, 'out/client.js')])
  const printed = client.prints(/shipped/).then(() => true)
  // A fresh client is not told what came before it, and does not say when it is there: publish until it was heard.
  do await fetch(`http://127.0.0.1:${port}/orders/42/ship`, { method: 'POST' })
  while (!(await Promise.race([printed, setTimeout(100, false)])))
}, 30_000)

test('the installed program shows its help', async () => {
  const { stdout } = await run(join(project, 'node_modules/.bin/rejoin'), ['--help'], { cwd: project })
  expect(stdout).toContain('serve')
})

test('the installed program serves a stream, and ends when it is told to', async () => {
  const program = start(join(project, 'node_modules/.bin/rejoin'), ['serve', '--port', '0'])
  const [address] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
  expect((await publish(address)).status).toBe(201)
  expect(await program.stop()).toBe(0)
})

async function installPacked(): Promise<void> {
  const tarballs = join(project, 'tarballs')
  await mkdir(tarballs)
  const workspaces = packageFolders.map((folder) => `--workspace=packages/${folder}`)
  await run('npm', ['pack', `--pack-destination=${tarballs}`, ...workspaces], { cwd: root })
  const packed = (await readdir(tarballs)).map((file) => join(tarballs, file))
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packed], { cwd: project })
  // The framework is the user's, and comes from here.
  await mkdir(join(project, 'node_modules/@types'), { recursive: true })
  for (const name of ['express', '@types/express']) {
    await symlink(join(root, 'node_modules', name), join(project, 'node_modules', name))
  }
}

async function writeReadmeCode(): Promise<void> {
  for (const [name, code] of readmeCode()) {
    await writeFile(join(project, name), code.replaceAll(portOfReadme, String(port)))
  }
  const compilerOptions = {
    ...{ strict: true, target: 'ES2023', module: 'NodeNext', outDir: 'out', rootDir: '.' },
    // The packages have to bring their own types; those of Node and of the web are the user's, and come from here.
    ...{ lib: ['ES2024', 'DOM', 'DOM.AsyncIterable'], types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
  }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
}

function compileReadmeCode(): Promise<{ stdout: string }> {
  return run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project])
}

function publish(hub: string): Promise<Response> {
  return fetch(`${hub}/publish`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ channel: 'orders/42', type: 'shipped', data: { at: 1 } }),
  })
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

function start(command: string, args: string[]): Program {
  const program = startProgram(command, args, project)
  running.push(program)
  return program
}

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freePortAfter } from '../../src/cli/commands/free-port.ts'
import { flagWords } from '../../src/cli/commands/given-flags.ts'
import { exitCodes } from '../../src/cli/exit-code.ts'
import { runProgram } from '../../src/cli/program.ts'
import { flagOf, hasFlag, settings } from '../../src/config/settings.ts'
import { certificateFiles, hasOpenssl } from '../support/certificate.ts'
import { fakeProcess, run } from '../support/fake-process.ts'
import { open, send, serving, until } from '../support/http.ts'

describe('a taken port', () => {
  test('is named, with the command that takes a free one and keeps the flags', async () => {
    const port = await takenPort()
    const { exitCode, stderr } = await run(['serve', '--log', 'memory', '--port', String(port)], {
      env: { npm_lifecycle_event: 'start' },
    })
    expect(exitCode).toBe(1)
    const [, advised] = / --port (\d+)/.exec(stderr) ?? []
    expect(stderr).toBe(
      `rejoin: Port ${port} of 127.0.0.1 is taken, perhaps by another Rejoin. Choose another port.\n\n` +
        `  npm start -- --port ${advised} --log memory\n\n`,
    )
    expect(Number(advised)).toBeGreaterThan(port)
  })

  test('is answered in the words of the installed program when that was started', async () => {
    const port = await takenPort()
    const { stderr } = await run(['serve', '--log', 'memory', '--port', String(port)])
    expect(stderr).toMatch(/^ {2}rejoin serve --port \d+ --log memory$/m)
  })

  test('is answered with every flag, repeated and quoted ones too, and without a password', async () => {
    const port = await takenPort()
    const flags = ['--retain', 'a/*', '--retain', 'b', '--no-metrics']
    const { stderr } = await run(['--log', 'memory', ...flags, '--port', String(port)])
    expect(stderr).toMatch(/--log memory .*--retain 'a\/\*' --retain b .*--no-metrics/)
    expect(flagWords(new Map([['--log', ['redis://:secret@10.0.0.7']]]), { '--port': '1' })).toBe('--log … --port 1')
  })

  test('is not answered with another taken port, nor with the one that our guides give to admins', async () => {
    const port = await takenPort()
    expect(await freePortAfter(port - 1, '127.0.0.1', [])).toBeGreaterThan(port)
    expect(await freePortAfter(4747, '127.0.0.1', [4748])).toBeGreaterThan(4748)
  })

  test('of the admin API is answered with the flag of that port', async () => {
    const port = await takenPort()
    const { stderr } = await run(['serve', '--log', 'memory', '--port', '0', '--admin-port', String(port)])
    expect(stderr).toMatch(/^ {2}rejoin serve --port 0 --log memory --admin-port \d+$/m)
  })
})

test('the help names the choices of a flag, and has examples', async () => {
  const { stdout } = await run(['serve', '--help'])
  const words = stdout.replaceAll(/\s+/g, ' ')
  expect(words).toContain('answered: disk, os, replicated, server (default: disk)')
  expect(words).toContain('Examples: rejoin serve --port 8080')
})

describe('a command line that cannot work is rejected, with advice', () => {
  test.each([
    [['--host', '0.0.0.0'], 'pass --insecure if that is what you want'],
    [
      ['--log', 'memory', '--data', 'events'],
      'The memory log keeps nothing on this disk, so it has no use for events. Leave out --data.',
    ],
    [['--log', 'redis'], '--log is "redis". Give lmdb, memory, or the address of a Redis'],
    [['--log', 'redis://127.0.0.1', '--data', 'events'], 'The redis log keeps nothing on this disk'],
    [
      ['--log', 'redis://127.0.0.1', '--durability', 'os'],
      'The redis log knows no durability os. Choose server or disk or replicated, or leave it out.',
    ],
    [['--log', 'memory', '--ids', 'snowflake'], 'The snowflake codec needs a log that survives restarts.'],
    [['--ids', 'guid'], '--ids is "guid". Give ulid, uuidv7, snowflake, sequence or hlc.'],
    [['--durability', 'replicated'], 'The lmdb log knows no durability replicated. Choose disk or os'],
    [
      ['--log', 'redis://me:Zx9vQ2mL@127.0.0.1:1/2'],
      'Redis at redis://127.0.0.1:1/2 cannot be used: connect ECONNREFUSED 127.0.0.1:1. Start it, or check the address.',
    ],
    [['--port', '65536'], '--port is 65536. Give a whole number from 0 to 65535.'],
    [['--port', '80x'], '--port is "80x". Give a whole number from 0 to 65535.'],
    [['--tls-cert', 'cert.pem'], 'tls.cert is set and tls.key is not. Give both, or none for no TLS.'],
    [['--tls-cert', 'no.pem', '--tls-key', 'no.pem'], 'Cannot read tls.cert'],
    [['--config', 'no.json'], 'Cannot read no.json: there is no such file'],
    [['--colour'], "rejoin: unknown option '--colour'"],
    [['extra'], 'too many arguments'],
  ])('%j', async (args, advice) => {
    const { exitCode, stderr, stdout } = await run(['serve', ...args])
    expect(stderr).toContain(advice)
    expect([exitCode, stdout]).toEqual([1, ''])
  })
})

test('the help names every setting that has a flag, and the file', async () => {
  const { exitCode, stdout } = await run(['serve', '--help'])
  expect(exitCode).toBe(0)
  const flags = new Set([...stdout.matchAll(/^ {2}(?:-h, )?--(?:no-)?([\w-]+)/gm)].map(([, flag]) => flag))
  expect([...flags].sort()).toEqual(['config', 'help', ...settings.filter(hasFlag).map(flagOf)].sort())
})

test.each([[['publsh', 'demo', 'hello']], [['help', 'publsh']]])(
  'a command that is not there is answered with the one that was meant, and with all that are: %j',
  async (args) => {
    const { exitCode, stderr } = await run(args)
    expect(stderr).toBe(
      'rejoin: There is no command "publsh". Did you mean publish? There are serve, config, publish, tail, channels, token, drain, backup, restore, migrate, doctor, storm, completion, help.\n',
    )
    expect(exitCode).toBe(1)
  },
)

test('rejoin without a command serves', async () => {
  const { url, signal } = await started(['--port', '0', '--log', 'memory'])
  expect((await send(url, '/healthz')).status).toBe(200)
  signal('SIGINT')
})

describe('events are kept in a folder', () => {
  test('an event that was published before a restart is there after it', async () => {
    const data = temporaryFolder()
    const before = await started(['--port', '0', '--data', data])
    const hello = await until(await open(before.url, '/events/demo'), 'event: hello')
    const id = /^id: (.+)$/m.exec(hello)?.[1] ?? ''
    expect((await send(before.url, '/publish/demo', { method: 'POST', body: 'kept' })).status).toBe(201)
    await before.end(data)
    const after = await started(['--port', '0', '--data', data])
    const stream = await open(after.url, '/events/demo', { headers: { 'last-event-id': id } })
    expect(await until(stream, 'data: kept')).toContain('"resumed":true')
    await after.end(data)
  })

  test('a folder that another program writes to is named, with flags that would work', async () => {
    const data = temporaryFolder()
    const { end } = await started(['--port', '0', '--data', data])
    const { exitCode, stderr } = await run(['serve', '--port', '4800', '--data', data, '--lock-timeout-ms', '200'])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`Another process writes to the log in ${data}.`)
    expect(stderr).toMatch(new RegExp(`^ {2}rejoin serve --port 48\\d\\d --data ${data}-2 --lock-timeout-ms 200$`, 'm'))
    await end(data)
  })

  test('a folder that cannot be made is named, and none beside it is advised', async () => {
    const { exitCode, stderr } = await run(['serve', '--port', '0', '--data', '/dev/null/x'])
    expect(exitCode).toBe(exitCodes.failed)
    expect(stderr).toMatch(/\/dev\/null\/x.* a file\. Name a folder, or a path where there is nothing yet\./)
    expect(stderr).not.toContain('--data')
  })
})

test('channels retain their newest values when that is set', async () => {
  const { url, signal } = await started(['--port', '0', '--log', 'memory', '--retain', 'prices/*', '--retain', 'rates'])
  const publish = (channel: string) =>
    send(url, '/publish', { method: 'POST', body: JSON.stringify({ channel, key: 'EUR', data: 1 }) })
  expect((await publish('prices/now')).status).toBe(201)
  expect((await publish('rates')).status).toBe(201)
  expect((await publish('other')).status).toBe(400)
  signal('SIGTERM')
})

test('channels have windows of their own when that is set', async () => {
  const windows = JSON.stringify({ 'prices/*': { maxEvents: 1 } })
  const { url, signal } = await started(['--port', '0', '--log', 'memory'], { REJOIN_WINDOWS: windows })
  for (const body of ['1', '2']) await send(url, '/publish/prices/now', { method: 'POST', body })
  const stream = await open(url, '/events/prices/now?lastEventId=earliest')
  const text = await new Promise<string>((resolve) => {
    let seen = ''
    stream.on('data', (piece) => {
      seen += String(piece)
      if (seen.includes('data: 2')) resolve(seen)
    })
  })
  expect(text).not.toContain('data: 1')
  signal('SIGTERM')
})

test('channels have times to come back of their own when that is set', async () => {
  const { url, signal } = await started(['--port', '0', '--log', 'memory'], { REJOIN_RETRIES: '{"prices/*":9000}' })
  expect(await until(await open(url, '/events/prices/now'), 'hello')).toMatch(/^retry: (?:9|10)\d{3}\n/)
  expect(await until(await open(url, '/events/news'), 'hello')).toMatch(/^retry: 2\d{3}\n/)
  signal('SIGTERM')
})

test('the first signal lets readers go, and nothing answers any more', async () => {
  const { url, signal, exits } = await started(['serve', '--port', '0', '--log', 'memory'])
  const stream = await open(url, '/events/demo')
  const ended = new Promise((resolve) => stream.resume().once('end', resolve))
  signal('SIGTERM')
  await ended
  await expect(send(url, '/healthz')).rejects.toThrow()
  expect(exits).toEqual([])
})

test('a signal that comes with the line that says it is ready ends it in order', async () => {
  const { host, stdout, exits, emit } = fakeProcess()
  const write = host.stdout.write.bind(host.stdout)
  host.stdout.write = (text: string) => {
    write(text)
    if (text.includes('"server_ready"')) emit('SIGTERM')
    return true
  }
  await runProgram(['serve', '--port', '0', '--log', 'memory'], host)
  const lines = stdout.map((line) => JSON.parse(line))
  expect(lines.map(({ event }) => event)).toEqual(['server_ready', 'server_stopping'])
  await expect
    .poll(() =>
      send(lines[0].url, '/healthz').then(
        () => 'answers',
        () => 'gone',
      ),
    )
    .toBe('gone')
  expect(exits).toEqual([])
})

test('the second signal ends at once', async () => {
  const { signal, exits } = await started(['serve', '--port', '0', '--log', 'memory'])
  signal('SIGINT')
  expect(exits).toEqual([])
  signal('SIGTERM')
  expect(exits).toEqual([1])
})

test.skipIf(!hasOpenssl)('SIGHUP reads the certificate again, says so, and ends nothing (needs openssl)', async () => {
  const { cert, key } = certificateFiles('localhost')
  const tls = ['--tls-cert', cert, '--tls-key', key]
  const { stdout, exits, emit, signal } = await started(['serve', '--port', '0', '--log', 'memory', ...tls])
  onTestFinished(() => signal('SIGTERM'))
  emit('SIGHUP')
  writeFileSync(key, 'no key')
  emit('SIGHUP')
  const lines = stdout.map((line) => JSON.parse(line).event)
  expect(lines).toEqual(['server_ready', 'tls_reloaded', 'tls_reload_failed'])
  expect(stdout.join('')).not.toContain('no key')
  expect(exits).toEqual([])
})

test('SIGHUP without a certificate ends nothing, and says so', async () => {
  const { url, stdout, exits, emit, signal } = await started(['serve', '--port', '0', '--log', 'memory'])
  onTestFinished(() => signal('SIGTERM'))
  emit('SIGHUP')
  expect((await send(url, '/healthz')).status).toBe(200)
  expect(stdout.map((line) => JSON.parse(line).event)).toEqual(['server_ready', 'server_warning'])
  expect(exits).toEqual([])
})

describe('an unforeseen failure', () => {
  test.each(['uncaughtException', 'unhandledRejection'] as const)(
    '%s is told, and ends it in order',
    async (mistake) => {
      const { url, host, stdout, exits, emit } = await started(['serve', '--port', '0', '--log', 'memory'])
      const stream = await open(url, '/events/demo')
      const read = until(stream, 'event: close')
      emit(mistake, new Error('nobody thought of it'))
      expect(await read).toContain('"reason":"drain"')
      expect(stdout.map((line) => JSON.parse(line)).find(({ level }) => level === 'fatal')).toMatchObject({
        event: 'server_failed',
        cause: expect.stringContaining('nobody thought of it'),
      })
      await expect(send(url, '/healthz')).rejects.toThrow()
      expect([host.exitCode, exits]).toEqual([1, []])
    },
  )

  test('the log has every reader that came and left until then, as a line or in a count', async () => {
    const { url, stdout, emit } = await started(['serve', '--port', '0', '--log', 'memory'])
    const streams = await Promise.all(Array.from({ length: 130 }, () => open(url, '/events/demo')))
    for (const stream of streams) stream.resume().on('error', () => undefined)
    emit('uncaughtException', new Error('nobody thought of it'))
    const total = (event: string) =>
      stdout
        .map((line) => JSON.parse(line))
        .reduce(
          (sum, line) => sum + (line.event === event ? 1 : 0) + (line.event === 'sse_more' ? (line[event] ?? 0) : 0),
          0,
        )
    // Sooner than the ten seconds after which a count is told anyway: by then the process has ended.
    const told = () => [total('sse_connect'), total('sse_disconnect')]
    await expect.poll(told, { timeout: 5000 }).toEqual([130, 130])
  })

  test('a second one ends it at once', async () => {
    const { exits, emit } = await started(['serve', '--port', '0', '--log', 'memory'])
    emit('uncaughtException', new Error('first'))
    emit('unhandledRejection', new Error('second'))
    expect(exits).toEqual([1])
  })
})

async function takenPort(): Promise<number> {
  const { url } = await serving()
  return Number(new URL(url).port)
}

/** The program with a server that listens, to be ended by a signal. */
async function started(args: string[], env: Record<string, string> = {}) {
  const { host, stdout, exits, emit } = fakeProcess({ env })
  await runProgram(args, host)
  const { url } = JSON.parse(stdout[0] ?? '') as { url: string }
  const signal = (name: 'SIGINT' | 'SIGTERM') => emit(name)
  const end = async (data: string) => {
    signal('SIGTERM')
    // The last thing it gives back: from then on, the next one may have the folder.
    await expect.poll(() => existsSync(join(data, 'writer.sock'))).toBe(false)
  }
  return { url, host, stdout, exits, emit, signal, end }
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

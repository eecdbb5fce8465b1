import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { type FaultProxy, type Link, openFaultProxy, type Toxics } from './fault-proxy.ts'

test('without toxics all bytes pass both ways, and so does the end', async () => {
  const { dial } = await openLine()
  const { near, far } = await dial()
  const sent = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => index % 251))
  far.end(sent)
  const received = await readToEnd(near)
  expect(received.equals(sent)).toBe(true)
  near.end('bye')
  expect((await readToEnd(far)).toString()).toBe('bye')
})

test('a reader that stops reading stops the sender', async () => {
  const { dial } = await openLine()
  const { near, far } = await dial()
  near.pause()
  let written = 0
  const part = Buffer.alloc(1 << 20)
  // The kernel takes some megabytes per socket. What does not end here would have been taken by the proxy's memory.
  while (far.write(part) || (await drained(far))) written += part.length
  expect(written).toBeLessThan(100 << 20)
  near.resume()
  await once(far, 'drain')
})

test('latency delays every byte and keeps their order under jitter', async () => {
  const { dial } = await openLine({ down: { latencyMs: 50, jitterMs: 30 } })
  const { near, far } = await dial()
  const started = performance.now()
  const arrived = readToEnd(near)
  for (let index = 0; index < 50; index += 1) {
    far.write(`${index},`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  far.end()
  expect((await arrived).toString()).toBe(Array.from({ length: 50 }, (_, index) => `${index},`).join(''))
  // A timer may fire up to a millisecond early.
  expect(performance.now() - started).toBeGreaterThanOrEqual(49)
})

test('a bandwidth lets no more pass than it says', async () => {
  const { dial } = await openLine({ down: { bytesPerSecond: 50_000 } })
  const { near, far } = await dial()
  const started = performance.now()
  far.end(Buffer.alloc(20_000))
  expect(await readToEnd(near)).toHaveLength(20_000)
  // The first piece of a fiftieth of a second goes at once.
  expect(performance.now() - started).toBeGreaterThanOrEqual(350)
})

test('slices are of one to seven bytes, and together what was sent', async () => {
  const { dial } = await openLine({ down: { slice: true } })
  const { near, far } = await dial()
  const pieces: Buffer[] = []
  near.on('data', (piece) => pieces.push(piece))
  far.end('abcdefghijklmnopqrstuvwxyz'.repeat(20))
  await once(near, 'end')
  expect(Buffer.concat(pieces).toString()).toBe('abcdefghijklmnopqrstuvwxyz'.repeat(20))
  // Two slices can be read together, but hardly ever all of them.
  expect(pieces.length).toBeGreaterThan(20)
  expect(pieces[0]?.length).toBeLessThanOrEqual(14)
})

test('a cut lets exactly so many bytes pass, and ends in a reset', async () => {
  const { dial } = await openLine()
  const { near, far, link } = await dial()
  const cut = link.cutAt(1000, 'reset')
  const ends = { near: endOf(near), far: endOf(far) }
  const arrived = collect(near)
  far.write(Buffer.alloc(600))
  await arrived.atLeast(600)
  far.write(Buffer.alloc(600))
  await cut
  // libuv reports a reset as an end when it reads bytes along with it.
  expect(['ECONNRESET', 'end']).toContain(await ends.near)
  expect(await ends.far).toBe('ECONNRESET')
  expect(link.passed.down).toBe(1000)
  expect(link.wasCut).toBe('reset')
  expect(arrived.length()).toBeLessThanOrEqual(1000)
})

test('a cut can end in a FIN, which looks like an orderly end', async () => {
  const { dial } = await openLine()
  const { near, far, link } = await dial()
  void link.cutAt(10, 'fin')
  const farEnd = endOf(far)
  far.write('0123456789abcdef')
  expect((await readToEnd(near)).toString()).toBe('0123456789')
  expect(await farEnd).toBe('end')
})

test('a cut can be made in what the client sends', async () => {
  const { dial } = await openLine()
  const { near, far, link } = await dial()
  void link.cutAt(3, 'fin', 'up')
  const arrived = collect(far)
  const ends = [endOf(near), endOf(far)]
  near.write('GET /')
  await Promise.all(ends)
  expect(arrived.text()).toBe('GET')
})

test('a half-open connection passes nothing more and tells nobody, until the client gives up', async () => {
  const { dial, proxy } = await openLine()
  const { near, far, link } = await dial()
  const other = await dial()
  const cut = link.cutAt(3, 'half-open')
  const arrived = collect(near)
  let over = false
  for (const socket of [near, far]) socket.once('close', () => (over = true))
  far.write('abcdef')
  near.write('ignored')
  await cut
  await arrived.atLeast(3)
  // Whole round trips on another connection are time enough for anything that was under way here.
  for (let trip = 0; trip < 20; trip += 1) {
    other.far.write('ping')
    await once(other.near, 'data')
  }
  expect(arrived.text()).toBe('abc')
  expect(over).toBe(false)
  expect(proxy.links.size).toBe(2)
  const farEnd = endOf(far)
  near.destroy()
  expect(await farEnd).toBe('ECONNRESET')
  await link.closed
  expect(proxy.links.size).toBe(1)
})

test('new connections are rejected for a while, and those that exist stay', async () => {
  const { dial, proxy } = await openLine()
  const { near, far } = await dial()
  proxy.reject()
  const rejected = connect(proxy.port, '127.0.0.1')
  expect(await endOf(rejected)).toBe('ECONNRESET')
  far.write('still here')
  expect((await once(near, 'data')).toString()).toBe('still here')
  proxy.accept()
  const next = await dial()
  next.far.write('welcome')
  expect((await once(next.near, 'data')).toString()).toBe('welcome')
})

test('new connections can be met with silence, which ends when they are accepted again', async () => {
  const { dial, proxy } = await openLine()
  proxy.reject('silence')
  const waiting = connect(proxy.port, '127.0.0.1')
  await once(waiting, 'connect')
  const ended = endOf(waiting)
  waiting.write('hello?')
  expect(await Promise.race([ended, turns(20).then(() => 'silence')])).toBe('silence')
  proxy.accept()
  expect(await ended).toBe('ECONNRESET')
  await dial()
})

test('toxics can be changed while bytes are under way', async () => {
  const { dial, proxy } = await openLine({ down: { latencyMs: 1_000_000 } })
  const { near, far } = await dial()
  far.write('late')
  await turns(20)
  proxy.toxics = {}
  expect((await once(near, 'data')).toString()).toBe('late')
})

test('toxics of one connection do not touch the others', async () => {
  const { dial } = await openLine()
  const slow = await dial()
  const quick = await dial()
  slow.link.toxics = { down: { latencyMs: 1_000_000 } }
  slow.far.write('never')
  quick.far.write('now')
  expect((await once(quick.near, 'data')).toString()).toBe('now')
  expect(slow.link.passed.down).toBe(0)
})

test('all connections can be cut at once', async () => {
  const { dial, proxy } = await openLine()
  const ends = [endOf((await dial()).near), endOf((await dial()).near)]
  proxy.cutAll('reset')
  expect(await Promise.all(ends)).toEqual(['ECONNRESET', 'ECONNRESET'])
})

test('a target that is not there ends connections in a reset', async () => {
  const { dial, server, proxy } = await openLine()
  const { far, near } = await dial()
  const ended = endOf(near)
  far.destroy()
  await ended
  await new Promise((resolve) => server.close(resolve))
  expect(await endOf(connect(proxy.port, '127.0.0.1'))).toBe('ECONNRESET')
})

interface Line {
  readonly proxy: FaultProxy
  readonly server: ReturnType<typeof createServer>
  /** A connection through the proxy, from both ends. */
  dial(): Promise<{ near: Socket; far: Socket; link: Link }>
}

async function openLine(toxics: Toxics = {}): Promise<Line> {
  const server = createServer({ allowHalfOpen: true })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const target = { port: (server.address() as AddressInfo).port }
  const proxy = await openFaultProxy({ target, random: createRandom(1), toxics })
  const sockets: Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await proxy.close()
    server.close()
  })
  return {
    proxy,
    server,
    async dial() {
      const linked = new Promise<Link>((resolve) => {
        const off = proxy.onLink((link) => {
          off()
          resolve(link)
        })
      })
      const accepted = once(server, 'connection')
      const near = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true })
      const [far] = (await accepted) as [Socket]
      for (const socket of [near, far]) {
        sockets.push(socket)
        socket.on('error', () => {})
      }
      return { near, far, link: await linked }
    },
  }
}

/** Leaves the other direction open, as a loop over the socket would not. */
async function readToEnd(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  await once(socket, 'end')
  return Buffer.concat(parts)
}

/** How a connection ends: in order, or with an error. */
function endOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    socket.on('end', () => resolve('end'))
    socket.on('close', () => resolve('close'))
    socket.resume()
  })
}

function collect(socket: Socket) {
  const parts: Buffer[] = []
  const length = () => parts.reduce((sum, part) => sum + part.length, 0)
  socket.on('data', (part) => parts.push(part))
  return {
    length,
    text: () => Buffer.concat(parts).toString(),
    async atLeast(bytes: number) {
      while (length() < bytes) await once(socket, 'data')
    },
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Whether the socket takes more soon; a sender that stays blocked for a second is blocked for good. */
function drained(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), 1000)
    socket.once('drain', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

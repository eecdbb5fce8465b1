import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../../support/program.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'

const descriptors = 200
const connections = 2 * descriptors

// How many descriptors there are is told by Linux alone.
test.runIf(process.platform === 'linux')(
  'rejoin serve, asked for more connections than it has descriptors, goes on, and publishers and its admin get through',
  async () => {
    const { hub, adminUrl, complaints } = await startWith(descriptors)
    const readers = Array.from({ length: connections }, (_, index) => openReader(hub.port, index))
    const taken = (await Promise.all(readers.map(({ isTaken }) => isTaken))).filter((each) => each).length
    expect(taken).toBeGreaterThan(descriptors / 4)
    expect(taken).toBeLessThan(descriptors)

    // Each second, the program looks at its own memory, which takes a descriptor.
    await readFigures(`${adminUrl}/admin/live`, 2)
    expect(await (await fetch(`${adminUrl}/readyz`)).json()).toMatchObject({ status: 'ready' })
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    const [unheard, turnedAway] = ['sockets', 'connections'].map((kind) => rejectsIn(metrics, kind)) as [number, number]
    expect(unheard + turnedAway).toBe(connections - taken)
    expect(turnedAway).toBeGreaterThan(0)

    // While the readers are still here: of the connections, some are not for them.
    expect(await publish(hub.origin)).toBe(201)
    for (const { socket } of readers) socket.destroy()
    expect(complaints).toEqual([])
    await hub.stop()
  },
)

async function startWith(most: number) {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-descriptors-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  let adminUrl = ''
  const complaints: string[] = []
  const hub = await openLastingHub({
    random: createRandom(1),
    start: (port) =>
      startProgram({
        ...{ directory, port, env: { REJOIN_ADMIN_PORT: '0' } },
        under: ['/bin/sh', '-c', `ulimit -n ${most} && exec "$@"`, 'sh'],
        onLine(line) {
          adminUrl ||= /"admin_url":"([^"]+)"/.exec(line)?.[1] ?? ''
          if (/"level":"(?:error|fatal)"/.test(line)) complaints.push(line)
        },
      }),
  })
  onTestFinished(() => hub.abandon())
  return { hub, adminUrl, complaints }
}

/** A reader that is either greeted, or turned away, or cut off. Readers come from several addresses, none of which has too many. */
function openReader(port: number, index: number): { socket: Socket; isTaken: Promise<boolean> } {
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % 8)}` })
  socket.write('GET /events/a HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const isTaken = new Promise<boolean>((resolve) => {
    socket.setEncoding('utf8').on('data', (part) => String(part).includes('event: hello') && resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
  onTestFinished(() => void socket.destroy())
  return { socket, isTaken }
}

function rejectsIn(metrics: string, kind: string): number {
  return Number(new RegExp(`^rejoin_rejects_total\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(metrics)?.[1])
}

async function readFigures(url: string, count: number): Promise<void> {
  const { body } = await fetch(url)
  let text = ''
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part
    if (text.split('event: figures').length > count) return
  }
  throw new Error(`The figures ended after ${JSON.stringify(text)}`)
}

async function publish(origin: string): Promise<number> {
  const response = await fetch(`${origin}/publish/a`, { method: 'POST', body: 'x' }).catch(() => undefined)
  await response?.body?.cancel()
  return response?.status ?? 0
}

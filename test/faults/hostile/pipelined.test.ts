import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../../support/program.ts'
import { memoryHistory } from '../history/history.ts'
import { startHub } from '../hubs/hub-process.ts'
import { pipelined } from './floods.ts'

// Three times what ended the process with this heap while every request was kept behind its stream.
const connections = 360
const smallHeap = ['env', 'NODE_OPTIONS=--max-old-space-size=400']

test('rejoin serve cuts and outlives hundreds of connections with 1,700 pipelined POSTs behind a stream each', async () => {
  let port = 0
  const onLine = (line: string) => {
    port ||= Number(/"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(line)?.[1] ?? 0)
  }
  const server = await startProgram({ port, under: smallHeap, onLine, env: { REJOIN_LOG_FORMAT: 'json' } })
  onTestFinished(async () => void (await server.kill()))
  await Promise.race([flood(port, pipelined('a', 'POST')), died(server.ended)])
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
}, 120_000)

test('an embedded hub cuts and outlives hundreds of connections with 1,700 pipelined GETs behind a stream each', async () => {
  const server = await startHub(memoryHistory(), { under: smallHeap })
  onTestFinished(async () => void (await server.kill()))
  await Promise.race([flood(server.port, pipelined('a', 'GET')), died(server.ended)])
  expect((await fetch(`http://127.0.0.1:${server.port}/poll/a`)).status).toBe(200)
}, 120_000)

/** Resolves when the hub has cut every connection. */
async function flood(port: number, text: string): Promise<void> {
  const closed = Array.from({ length: connections }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(text)
    return new Promise((resolve) => socket.resume().once('close', resolve))
  })
  await Promise.all(closed)
}

async function died(ended: Promise<{ said: string }>): Promise<never> {
  throw new Error(`The hub has ended. ${(await ended).said}`)
}

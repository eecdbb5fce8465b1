import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls } from '../processes/commands.ts'

// What is left of a publish when nothing becomes of it: the body is read, and an id of the right length is answered.
const answer = JSON.stringify({ id: '01JCQ8ZK5N7W2V0G3T9B4D6H1M', durability: 'disk' })
const headers = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Length': answer.length,
}

const server = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    response.writeHead(201, { ...headers, 'X-Bytes': Buffer.concat(parts).length })
    response.end(answer)
  })
})

const commands = {
  listen(): Promise<number> {
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })
  },
}

export type BarePostCommands = typeof commands

answerCalls(commands)

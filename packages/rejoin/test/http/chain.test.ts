import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { inTurn } from '../../src/http/chain.ts'
import { cutOff, send } from '../support/http.ts'

describe('a step that fails', () => {
  test('fails its own request, tells the operator why, and leaves the next one alone', async () => {
    const failures: unknown[] = []
    const url = await listening(
      inTurn(
        [
          ({ url }) => {
            if (url === '/hostile') throw new Error('nobody thought of it')
            return false
          },
        ],
        (_request, response) => response.end('well'),
        (cause) => failures.push(cause),
      ),
    )
    const { status, text } = await send(url, '/hostile')
    expect([status, JSON.parse(text)]).toMatchObject([500, { error: { code: 'internal' } }])
    expect(text).not.toContain('nobody thought of it')
    expect(failures).toMatchObject([{ message: 'nobody thought of it' }])
    expect(await send(url, '/')).toMatchObject({ status: 200, text: 'well' })
  })

  test('in the middle of its answer cuts it off, so that nobody takes it for whole', async () => {
    const url = await listening(
      inTurn(
        [],
        (_request, response) => {
          response.writeHead(200)
          throw new Error('halfway')
        },
        () => undefined,
      ),
    )
    expect((await cutOff(url, '/')).code).toBe('ECONNRESET')
  })
})

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../src/http/listen.ts'

// Only Linux has this file, and its `ss` shows the backlog of a listening socket as Send-Q.
const limitFile = '/proc/sys/net/core/somaxconn'

if (existsSync(limitFile) && existsSync('/usr/bin/ss')) {
  test('as many readers can wait to be let in as the system allows', async () => {
    const server = createServer()
    onTestFinished(() => void server.close())
    const port = await listen(server, { address: '127.0.0.1', port: 0 })
    const [, , backlog] = execFileSync('ss', ['-Hltn', `sport = :${port}`], { encoding: 'utf8' }).split(/\s+/)
    expect(Number(backlog)).toBe(Math.min(65_535, Number(readFileSync(limitFile, 'utf8'))))
  })
}

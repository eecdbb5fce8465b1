import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Serving, serve } from 'rejoin'
import { describe, expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../../support/certificate.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { openProgramTerminal } from './terminal.ts'

const small = '--readers 20 --rate 100 --for 3s --every 1s --away 1s'

describe('rejoin storm in a terminal', () => {
  test.each([80, 120])('of %i columns shows how it goes, and leaves the summary alone', async (columns) => {
    const { url } = await serving()
    const terminal = await openProgramTerminal({}, { columns })
    terminal.type(`rejoin storm ${url} ${small}; echo "exit $?"`)
    await terminal.shows(/^ {2}readers {3}[█░]{24} \d+ of 20 connected$/m)
    await terminal.shows(/^ {2}faults {4}0 lost, 0 doubled, 0 out of order, 0 foreign, 0 cursorless$/m)
    await terminal.shows(/^Held: nothing lost, doubled or out of order\. \(\d+\.\d s\)\nexit 0$/m)
    const screen = terminal.screen()
    expect(screen).not.toMatch(/[█░]/)
    expect(screen.split('\n').filter((line) => /^ {2}readers/.test(line))).toHaveLength(1)
  })

  test('ends on Ctrl-C with the summary of what was seen', async () => {
    const { url } = await serving()
    const terminal = await openProgramTerminal()
    terminal.type(`rejoin storm ${url} --readers 5 --cut 0 --for 1h; echo "exit $?"`)
    await terminal.shows(/events {4}[1-9]\d* published/)
    terminal.press('C-c')
    await terminal.shows(/Held: nothing lost.*\nexit 130$/m)
  })

  test('reads over TLS, by a certificate that Node is told to trust', async () => {
    const { folder, remove } = temporaryFolder()
    onTestFinished(remove)
    const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    const made = makeCertificate('localhost')
    writeFileSync(files.cert, made?.cert ?? '')
    writeFileSync(files.key, made?.key ?? '')
    const { url } = await serving({ tls: files })
    const address = url.replace('127.0.0.1', 'localhost')
    const storm = `rejoin storm ${address} --readers 20 --for 2s --every 1s --away 1s`
    const trusting = await openProgramTerminal({ NODE_EXTRA_CA_CERTS: files.cert })
    expect(await trusting.run(storm)).toMatch(/\nHeld: nothing lost.*\nexit 0$/)
    const terminal = await openProgramTerminal()
    const advice = 'If you trust the certificate, name its file: NODE_EXTRA_CA_CERTS=cert\\.pem'
    const rejected = new RegExp(`^rejoin: Cannot reach https:\\S+ self-signed certificate\\. ${advice}\nexit 4$`, 'm')
    expect(await terminal.run(storm)).toMatch(rejected)
  })
})

async function serving(options: Parameters<typeof serve>[0] = {}): Promise<Serving> {
  const server = await serve({ port: 0, ...options })
  onTestFinished(() => server.close({ withinMs: 0 }))
  return server
}

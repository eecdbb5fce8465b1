import { describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { serve } from '../../../src/serve.ts'
import { certificateFiles, hasOpenssl } from '../../support/certificate.ts'
import { fakeProcess, run } from '../../support/fake-process.ts'

const commands = [['publish', 'demo', 'x'], ['channels'], ['drain'], ['doctor'], ['storm'], ['tail', 'demo']]

describe.skipIf(!hasOpenssl)('where the hub speaks TLS', () => {
  test.each(commands)('%s names a certificate that nobody trusts, and how to trust it', async (...command) => {
    const url = await secureHub()
    const stderr = await saidBy(command, url)
    expect(stderr).toContain(`Cannot reach ${url}: self-signed certificate.`)
    expect(stderr).toContain('NODE_EXTRA_CA_CERTS=cert.pem')
    expect(stderr).not.toContain('Start one with')
  })

  // A storm first looks for a hub, and sends its user to the doctor where it finds none.
  test.each(commands.filter(([name]) => name !== 'storm'))(
    '%s says so when it was given http://',
    async (...command) => {
      const url = await secureHub()
      const plain = url.replace('https:', 'http:')
      const stderr = await saidBy(command, plain)
      expect(stderr).toContain(`What listens at ${plain} speaks TLS. Try ${url}`)
      expect(stderr).not.toContain('Start one with')
    },
  )
})

async function secureHub(): Promise<string> {
  const { url, close } = await serve({ port: 0, tls: certificateFiles('localhost') })
  onTestFinished(() => close())
  return url
}

async function saidBy(command: readonly string[], url: string): Promise<string> {
  const [name] = command
  if (name === 'doctor' || name === 'storm') return (await run([...command, url])).stderr
  if (name !== 'tail') return (await run([...command, '--url', url])).stderr
  // It goes on trying, so it is ended once it has said why.
  const { host, stderr, emit } = fakeProcess()
  const tailing = runProgram([...command, '--url', url], host)
  await expect.poll(() => stderr.join('')).toContain('trying again in')
  emit('SIGTERM')
  await tailing
  return stderr.join('')
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { makeCertificate } from '../../../../test/support/certificate.ts'
import type { TlsFiles } from '../../src/http/certificate.ts'

/** Whether certificates can be made here. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0

/** Files with a certificate that nobody should trust, good for a day. `write` puts another one in their place. */
export function certificateFiles(name: string): TlsFiles & { write(name: string): void } {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const write = (commonName: string) => {
    const made = makeCertificate(commonName)
    writeFileSync(files.key, made?.key ?? '')
    writeFileSync(files.cert, made?.cert ?? '')
  }
  write(name)
  return { ...files, write }
}

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { TlsFiles } from '../src/tls/certificate.ts'

/** Whether certificates can be made here. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0

/** Files with a certificate that nobody should trust, good for a day. `write` puts another one in their place. */
export function certificateFiles(name: string): TlsFiles & { write(name: string): void } {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const write = (commonName: string) => {
    const { key, cert } = makeCertificate(commonName)
    writeFileSync(files.key, key)
    writeFileSync(files.cert, cert)
  }
  write(name)
  return { ...files, write }
}

function makeCertificate(commonName: string): { key: string; cert: string } {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  // Both go to the standard output, one behind the other.
  const made = ['req', '-x509', ...curve, '-subj', `/CN=${commonName}`, '-days', '1', '-keyout', '-']
  const pem = String(spawnSync('openssl', made).stdout)
  const start = pem.indexOf('-----BEGIN CERTIFICATE-----')
  return { key: pem.slice(0, start), cert: pem.slice(start) }
}

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

/** A certificate that nobody should trust, good for a day; undefined where there is no openssl to make it. */
export function makeCertificate(commonName = 'localhost'): Certificate | undefined {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const named = ['-subj', `/CN=${commonName}`, '-days', '1']
  // Key and certificate go to the standard output, one behind the other.
  const { status, stdout } = spawnSync('openssl', ['req', '-x509', ...curve, ...named, '-keyout', '-'], {
    encoding: 'utf8',
  })
  if (status !== 0) return undefined
  const start = stdout.indexOf('-----BEGIN CERTIFICATE-----')
  return { key: stdout.slice(0, start), cert: stdout.slice(start) }
}

/** Such a certificate, as files in a folder. */
export function writeCertificate(folder: string, { cert, key }: Certificate): { cert: string; key: string } {
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
  return files
}

import { spawnSync } from 'node:child_process'

/** A certificate that nobody should trust, good for a day; undefined where there is no openssl to make it. */
export function makeCertificate(): { key: string; cert: string } | undefined {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  // Both go to the standard output, one behind the other.
  const { status, stdout } = spawnSync('openssl', [
    'req',
    '-x509',
    ...curve,
    '-subj',
    '/CN=localhost',
    '-days',
    '1',
    '-keyout',
    '-',
  ])
  const pem = String(stdout)
  const start = pem.indexOf('-----BEGIN CERTIFICATE-----')
  return status === 0 ? { key: pem.slice(0, start), cert: pem.slice(start) } : undefined
}

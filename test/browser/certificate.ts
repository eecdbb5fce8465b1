import { spawnSync } from 'node:child_process'

/** A key and a certificate that nobody should trust, in one text; undefined where there is no openssl to make them. */
export function makeCertificate(): string | undefined {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const output = ['-subj', '/CN=localhost', '-days', '1', '-keyout', '-', '-out', '-']
  const { status, stdout } = spawnSync('openssl', ['req', '-x509', ...curve, ...output], { encoding: 'utf8' })
  return status === 0 ? stdout : undefined
}

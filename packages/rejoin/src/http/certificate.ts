import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { RejoinError } from '@rejoin/protocol'

/** A certificate that is read again when its files change, so that a renewal needs no restart. */
export function watchCertificate(files: TlsFiles, options: CertificateOptions): Certificate {
  const { onReload, everyMs = 5000 } = options
  const current = readCertificate(files)

  function reload(): void {
    try {
      onReload({ pem: readCertificate(files) })
    } catch (cause) {
      // Perhaps only one of the two files is new so far. The change of the other file calls `reload` again.
      onReload({ cause })
    }
  }

  // Polls the files instead of using `watch`: they are often links into a folder that is replaced as a whole.
  for (const file of [files.cert, files.key]) {
    watchFile(file, { interval: everyMs, persistent: false }, (now, before) => {
      if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino) reload()
    })
  }

  return {
    ...current,
    reload,
    close() {
      for (const file of [files.cert, files.key]) unwatchFile(file)
    },
  }
}

export interface TlsFiles {
  /** A PEM file: the certificate, followed by the chain to a root that clients know. */
  cert: string
  /** A PEM file: the private key of the certificate, without a passphrase. */
  key: string
}

export interface CertificateOptions {
  /** Called with the new certificate, or with the reason why it cannot be used: then the old one stays. */
  onReload(outcome: { pem: Pem } | { cause: unknown }): void
  /**
   * How often the files are checked, in milliseconds.
   * @defaultValue 5000
   */
  everyMs?: number
}

export interface Pem {
  readonly cert: Buffer
  readonly key: Buffer
}

export interface Certificate extends Pem {
  /** Reads the files now. */
  reload(): void
  close(): void
}

/** Reads both files. Throws when a file is missing, or when the key does not belong to the certificate. */
export function readCertificate(files: TlsFiles): Pem {
  const pem = { cert: readPem('cert', files.cert), key: readPem('key', files.key) }
  try {
    // Finds out whether key and certificate fit together before the first client does.
    createSecureContext(pem)
  } catch (cause) {
    throw new RejoinError(
      `The certificate in ${files.cert} and the key in ${files.key} cannot be used together: ${messageOf(cause)}. ` +
        'Give PEM files of the same certificate, the key without a passphrase.',
      { code: 'invalid-option', cause },
    )
  }
  return pem
}

function readPem(name: keyof TlsFiles, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new RejoinError(`Cannot read tls.${name}: ${messageOf(cause)}. Name a PEM file that this user may read.`, {
      code: 'invalid-option',
      cause,
    })
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

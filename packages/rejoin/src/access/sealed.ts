import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

/** The length of a key for `seal`, in bytes. */
export const keyBytes = 32

/** What a sealed text holds. */
export interface Content {
  /** A name that no other sealed text has, whatever spelling of the sealed text it was read from. */
  readonly name: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  readonly text: string
}

/**
 * Encrypts and signs a text for addresses (AES-256-GCM, base64url). Only a holder of the key can read it, change it or make one.
 */
export function seal(key: Buffer, expiresAt: number, text: string): string {
  const salt = randomBytes(saltBytes)
  const cipher = createCipheriv(algorithm, keyFor(key, salt), noIv)
  const expiry = Buffer.allocUnsafe(expiryBytes)
  expiry.writeUIntBE(expiresAt, 0, expiryBytes)
  const body = [cipher.update(expiry), cipher.update(text, 'utf8'), cipher.final()]
  return Buffer.concat([salt, ...body, cipher.getAuthTag()]).toString('base64url')
}

/** Undefined for a text that was sealed with another key, or changed. */
export function unseal(key: Buffer, sealed: string): Content | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < saltBytes + expiryBytes + tagBytes) return undefined
  const salt = bytes.subarray(0, saltBytes)
  const decipher = createDecipheriv(algorithm, keyFor(key, salt), noIv, { authTagLength: tagBytes })
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const body = Buffer.concat([decipher.update(bytes.subarray(saltBytes, -tagBytes)), decipher.final()])
    const text = body.toString('utf8', expiryBytes)
    return { name: salt.toString('base64url'), expiresAt: body.readUIntBE(0, expiryBytes), text }
  } catch {
    // `final` throws when the signature does not fit. There is no other way to ask.
    return undefined
  }
}

const algorithm = 'aes-256-gcm'
const saltBytes = 16
const expiryBytes = 6
const tagBytes = 16
// Each text has a key of its own, so the same start value is never used twice with one key. A random start value of 96 bits under
// one key for all texts would be worn out after 2^32 of them (NIST SP 800-38D, section 8.3).
const noIv = Buffer.alloc(12)

function keyFor(key: Buffer, salt: Buffer): Buffer {
  return createHmac('sha256', key).update(salt).digest()
}

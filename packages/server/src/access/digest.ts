import { createHash } from 'node:crypto'

/**
 * What a secret is stored and looked up by. How long a comparison of digests takes tells nothing about the secrets, and
 * memory that is dumped holds none.
 */
export function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

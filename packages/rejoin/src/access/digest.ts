import { hash } from 'node:crypto'

/**
 * What a secret is stored and looked up by, as base64. How long a comparison of digests takes tells nothing about the
 * secrets, and memory that is dumped holds none.
 */
export function digestOf(secret: string): string {
  // Half the time of createHash, once for each publish.
  return hash('sha256', secret, 'base64')
}

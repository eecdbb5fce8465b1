import { hash } from 'node:crypto'

/**
 * The digest of a secret, as base64. Secrets are stored and looked up by it: the time of a comparison tells nothing about a
 * secret, and a memory dump holds no secret.
 */
export function digestOf(secret: string): string {
  // `hash` takes half the time of createHash.
  return hash('sha256', secret, 'base64')
}

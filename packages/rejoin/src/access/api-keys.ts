import { hash, timingSafeEqual } from 'node:crypto'
import { badRule, type Identity } from './identity.ts'
import { checkPatterns } from './rights.ts'
import type { ApiKeyRule } from './rules.ts'

/** Finds the owner of the key with this digest. Compares all keys, so that the time does not tell which key came close. */
export function createApiKeys(rules: readonly ApiKeyRule[]): (digest: string) => Identity | undefined {
  const keys = rules.map(readRule)
  const names = new Set(rules.map(({ name }) => name))
  if (names.size < rules.length) throw badRule('Two API keys have the same name. Give each a name of its own.')

  return (digest) => {
    const presented = Buffer.from(digest, 'base64')
    let found: Identity | undefined
    for (const { sha256, identity } of keys) {
      if (timingSafeEqual(sha256, presented)) found = identity
    }
    return found
  }
}

function readRule({ name, sha256, subscribe, publish }: ApiKeyRule): { sha256: Buffer; identity: Identity } {
  if (!/^[\w.@-]{1,100}$/.test(name)) {
    throw badRule(`An API key cannot be named ${JSON.stringify(name.slice(0, 100))}. Use letters, digits and . _ @ -`)
  }
  if (!/^[0-9a-f]{64}$/i.test(sha256)) {
    // The wrong value may be the key itself, so the message does not repeat it.
    throw badRule(`The API key ${name} has no SHA-256 of 64 hex digits. Make one with: printf %s "$KEY" | sha256sum`)
  }
  const grant = { subject: `key:${name}`, subscribe: checkPatterns(subscribe), publish: checkPatterns(publish) }
  return { sha256: Buffer.from(sha256, 'hex'), identity: { grant } }
}

/**
 * The digest of a secret, as base64. Secrets are stored and looked up by it: the time of a comparison tells nothing about a
 * secret, and a memory dump holds no secret.
 */
export function digestOf(secret: string): string {
  // `hash` takes half the time of createHash.
  return hash('sha256', secret, 'base64')
}

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { RejoinError } from '@rejoin/protocol'
import type { CryptoKey, FlattenedJWSInput, JSONWebKeySet, JWSHeaderParameters } from 'jose'
import { isLoopbackHost } from './hosts.ts'
import { badRule } from './identity.ts'

/** The public keys of an issuer. They can change at any time. */
export interface KeySet {
  /** The key that fits a token's header. Rejects with jose's error when no key fits. */
  find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey>
  /**
   * For a token that names no key and that none of the keys has signed: the issuer may have changed its key since. Reads the keys
   * again, but seldom. True when they are others now.
   */
  readAgain(): Promise<boolean>
}

export interface KeySetContext {
  now(): number
  /** Called when the keys have changed: tokens that the old keys accepted have to be checked again. */
  changed(): void
  /** Aborted when the program ends. */
  readonly signal: AbortSignal
}

// How often an address is read: a key that the issuer withdraws is rejected within this time.
const addressFreshMs = 5 * 60_000
const fileFreshMs = 2000
// Tokens with invented key ids must not make the hub flood the issuer.
const unknownKeyPauseMs = 30_000
const failurePauseMs = 5000
// While an issuer is down, its last keys are used for this long.
const staleMs = 3_600_000
const timeoutMs = 5000
const maxBytes = 256 * 1024

/** Reads a JSON Web Key Set from an https address or a file when the first token needs it, and again at regular intervals. */
export function createKeySet(source: string, { now, changed, signal }: KeySetContext): KeySet {
  const isAddress = /^https?:\/\//i.test(source)
  if (isAddress) checkAddress(source)
  else checkFile(source)
  const freshMs = isAddress ? addressFreshMs : fileFreshMs
  let text: string | undefined
  let keys: Keys | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let failure: unknown
  let reading: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  /** Reads the keys again even without new tokens: open streams may depend on a key that the issuer withdraws. */
  function readAgainLater(): void {
    timer ??= setInterval(() => void read(), freshMs).unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  /** Starts a read, or joins the one that is under way. Never rejects. */
  function read(): Promise<void> {
    triedAt = now()
    reading ??= readOnce().then(
      () => {
        reading = undefined
        failure = undefined
      },
      (error) => {
        reading = undefined
        failure = error
      },
    )
    return reading
  }

  async function readOnce(): Promise<void> {
    const newText = await (isAddress ? fetchText(source, signal) : readFile(source, 'utf8'))
    if (newText !== text) {
      const { createLocalJWKSet } = await import('jose')
      keys = createLocalJWKSet(JSON.parse(newText) as JSONWebKeySet)
      const isFirst = text === undefined
      text = newText
      if (!isFirst) changed()
    }
    readAt = now()
  }

  async function current(): Promise<Keys> {
    const isDue = now() - readAt >= freshMs && (failure === undefined || now() - triedAt >= failurePauseMs)
    const reading = isDue ? read() : undefined
    // While the issuer does not answer and its last keys are still usable, nobody waits for the read.
    if (!(keys && isUsable() && failure !== undefined)) await reading
    if (keys && isUsable()) return keys
    throw new RejoinError('The keys that tokens are checked with cannot be read now. Try again in a while.', {
      code: 'unreachable',
      retryable: true,
      cause: failure,
    })
  }

  function isUsable(): boolean {
    return now() - readAt < staleMs
  }

  return {
    async find(header, token) {
      if (!timer && !signal.aborted) readAgainLater()
      const known = await current()
      try {
        return await known(header, token)
      } catch (error) {
        if (!isUnknownKey(error) || now() - triedAt < unknownKeyPauseMs) throw error
        await read()
        return (await current())(header, token)
      }
    },
    async readAgain() {
      if (now() - triedAt < unknownKeyPauseMs) return false
      const before = text
      await read()
      return text !== before
    },
  }
}

type Keys = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>

function checkAddress(source: string): void {
  const url = URL.canParse(source) ? new URL(source) : undefined
  if (url?.username || url?.password) {
    throw badRule('The address of a key set holds a name or a password, with which it cannot be read. Leave them out.')
  }
  if (url?.protocol === 'https:' || (url && isLoopbackHost(url.host))) return
  throw badRule(
    `The key set ${JSON.stringify(source)} cannot be trusted over http: somebody in between could replace a key. Use https.`,
  )
}

function checkFile(source: string): void {
  try {
    const { keys } = JSON.parse(readFileSync(source, 'utf8'))
    if (Array.isArray(keys)) return
  } catch (cause) {
    throw badRule(`The key set ${JSON.stringify(source)} cannot be read. Give an https address or a JSON file.`, cause)
  }
  throw badRule(`The file ${JSON.stringify(source)} is no key set: {"keys": [...]} is what it has to hold.`)
}

async function fetchText(source: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(source, {
    headers: { Accept: 'application/jwk-set+json, application/json' },
    // The operator chose this address. A redirect would let its server choose another.
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`${source} answered with ${response.status}`)
  }
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of response.body ?? []) {
    length += part.length
    if (length > maxBytes) throw new Error(`${source} is over ${maxBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function isUnknownKey(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ERR_JWKS_NO_MATCHING_KEY'
}

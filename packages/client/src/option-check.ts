import { invalidOption } from './address.ts'
import { report } from './handler-set.ts'
import type { ConnectOptions } from './options.ts'
import type { CursorStore } from './persistence.ts'

/**
 * Reports unknown options and invalid values. A misspelt option would otherwise stay unnoticed until the day it is
 * needed. Numbers and `from` are not checked here: `connect` itself rejects them.
 */
export function checkOptions(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name as keyof typeof checks] : undefined
    if (!check) report(invalidOption(`${name} is no option. Give ${Object.keys(checks).join(', ')}.`))
    else if (value !== undefined && !check.isGood(value)) {
      report(invalidOption(`${name} is ${shown(value)}. Give ${check.advice}.`))
    }
  }
}

const transports: readonly unknown[] = ['fetch', 'long-poll', 'event-source']

const checks: Record<keyof ConnectOptions, Check> = {
  identity: { advice: 'the id of the user, as text', isGood: (it) => isString(it) && it !== '' },
  from: anything(),
  persist: { advice: "'session', or a store with load and save", isGood: (it) => it === 'session' || isStore(it) },
  parse: oneOf('json', 'text'),
  schemas: { advice: 'an object with a schema for each type', isGood: isObject },
  keep: anything(),
  token: { advice: 'a string or a function', isGood: (it) => isString(it) || isFunction(it) || it === null },
  headers: { advice: 'headers or a function', isGood: (it) => isObject(it) || isFunction(it) },
  credentials: oneOf('omit', 'same-origin', 'include'),
  fetch: { advice: 'a function', isGood: isFunction },
  retryMs: anything(),
  maxRetryMs: anything(),
  maxRetries: anything(),
  backoff: orFunction(oneOf('full')),
  transports: {
    advice: `a list of ${transports.map(shown).join(', ')}, the best first`,
    isGood: (it) => Array.isArray(it) && it.length > 0 && it.every((name) => transports.includes(name)),
  },
  pauseWhenHidden: oneOf(true, false),
  shareAcrossTabs: {
    advice: 'the id of the user, or true',
    isGood: (it) => it === true || (isString(it) && it !== ''),
  },
  reports: orFunction({ advice: 'a URL', isGood: (it) => isString(it) || it instanceof URL }),
  signal: { advice: 'an AbortSignal', isGood: isObject },
  clock: { advice: 'a clock', isGood: isObject },
}

interface Check {
  readonly advice: string
  isGood(value: unknown): boolean
}

function anything(): Check {
  return { advice: '', isGood: () => true }
}

function oneOf(...values: readonly unknown[]): Check {
  return { advice: values.map(shown).join(', '), isGood: (value) => values.includes(value) }
}

function orFunction({ advice, isGood }: Check): Check {
  return { advice: `${advice}, or a function`, isGood: (value) => isFunction(value) || isGood(value) }
}

function isStore(value: unknown): boolean {
  return isObject(value) && isFunction((value as CursorStore).load) && isFunction((value as CursorStore).save)
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function isString(value: unknown): boolean {
  return typeof value === 'string'
}

function shown(value: unknown): string {
  if (isString(value)) return `'${value}'`
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`
  return isObject(value) || isFunction(value) ? `of the type ${typeof value}` : String(value)
}

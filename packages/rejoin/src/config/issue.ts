import type { BaseIssue } from 'valibot'
import { closestName, plainName } from '../closest-name.ts'
import { flagOf, type Setting, settings } from './settings.ts'

/**
 * What is wrong with a setting: its name, the value found, and the values allowed. `origin` is the flag, the variable or the file
 * that the value came from. A flag and a variable hold one setting: `only` gives it.
 */
export function describeIssue(issue: BaseIssue<unknown>, origin: string, only?: Setting): string {
  const path = issue.path?.map(({ key }) => String(key)) ?? []
  const name = path.length === 0 ? origin : `"${path.join('.')}" in ${origin}`
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${name} is not a setting. ${beside(path)}`
  const setting = only ?? settingAt(path)
  const isWhole = path.length === (only ? 0 : setting?.key.split('.').length)
  const allowed = setting && (isWhole || setting.kind.repeatable) ? setting.kind.allowed : wordsFor(issue)
  if (issue.input === undefined) return `${name} is missing.`
  const isSecret = setting ? setting.secret : holdsSecrets(path)
  const found = isSecret ? 'wrong, and not shown because it is secret' : shown(plain(issue.input, setting))
  return `${name} is ${found}. Give ${allowed}.${isServiceLink(origin, issue.input) ? serviceLinkAdvice : ''}`
}

/** Whether Kubernetes has set this variable. It sets `<SERVICE>_PORT` to an address for each Service of the namespace. */
function isServiceLink(origin: string, value: unknown): boolean {
  return origin === 'REJOIN_PORT' && /^(?:tcp|udp|sctp):\/\//.test(String(value))
}

const serviceLinkAdvice =
  ' Kubernetes sets this variable in each pod of a namespace with a Service named rejoin. Set enableServiceLinks: false in the ' +
  'spec of the pod, or rename the Service.'

/** The setting at a path, or around it; undefined for an unknown name. */
function settingAt(path: readonly string[]): Setting | undefined {
  return settings.find(({ key }) => key === path.slice(0, key.split('.').length).join('.'))
}

/** Whether a group of settings holds a secret: a wrong value in its stead may be that secret. */
function holdsSecrets(path: readonly string[]): boolean {
  return settings.some(({ key, secret }) => secret && key.startsWith(`${path.join('.')}.`))
}

/** The setting that was probably meant by an unknown key, else the keys that are allowed where it was found. */
function beside(path: readonly string[]): string {
  const above = path.slice(0, -1)
  const depth = above.length
  const known = settings
    .map(({ key }) => key.split('.'))
    .filter((keys) => keys.length > depth && above.every((name, index) => keys[index] === name))
    .map((keys) => keys[depth])
  const names = [...new Set(known)].filter((name) => name !== undefined).sort()
  const meant = closestName(path.at(-1) ?? '', names)
  if (meant !== undefined) return `Did you mean "${[...above, meant].join('.')}"?`
  const elsewhere = inAnotherGroup(path)
  if (elsewhere !== undefined) return `Did you mean ${written(elsewhere.split('.'))}?`
  if (names.length === 0) return 'Leave it out.'
  return depth === 0 ? `There are ${names.join(', ')}.` : `In "${above.join('.')}" there are ${names.join(', ')}.`
}

/** The setting that was written outside of its group: `maxPerIp`, or `limits-max-per-ip` like its flag. */
function inAnotherGroup(path: readonly string[]): string | undefined {
  // Below a setting that is an object, such as `windows`, the keys have no names of settings.
  if (settingAt(path.slice(0, -1))) return undefined
  const name = plainName(path.at(-1) ?? '')
  const namesOf = (setting: Setting) => [setting.key, flagOf(setting), setting.key.split('.').at(-1) ?? '']
  return settings.find((setting) => namesOf(setting).some((each) => plainName(each) === name))?.key
}

/** A setting as the file has it: `{"limits": {"maxPerIp": …}}`. */
function written([name, ...below]: readonly string[]): string {
  return name === undefined ? '…' : `{"${name}": ${written(below)}}`
}

/** The values that the schema allows, in words. The schema writes them as `("adaptive" | number)` or `>=500`. */
function wordsFor({ expected, type }: BaseIssue<unknown>): string {
  // The only custom check is that a group of settings is no list.
  if (type === 'custom') return 'an object'
  const alternatives = (expected ?? type).replace(/^\((.+)\)$/, '$1').split(' | ')
  return alternatives
    .map((each) => words[each] ?? each)
    .join(' or ')
    .replace('>=', 'at least ')
    .replace('<=', 'at most ')
}

const words: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  Array: 'a list',
  Object: 'an object',
  '/^[0-9a-f]{64}$/i': 'its SHA-256 of 64 hex digits: printf %s "$KEY" | sha256sum',
}

/** The value without the part that its setting never shows. */
function plain(value: unknown, setting: Setting | undefined): unknown {
  if (!setting?.shown) return value
  return setting.shown(typeof value === 'string' ? value : JSON.stringify(value))
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

/** Joins several problems into one message. */
export function inOneText(problems: readonly string[]): string {
  const [only] = problems
  if (problems.length === 1) return only as string
  return `${problems.length} settings are wrong.\n${problems.map((problem) => `\n  ${problem}`).join('')}`
}

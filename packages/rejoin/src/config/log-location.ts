import * as v from 'valibot'
import type { Kind } from './kind.ts'

/** Where events are kept: `lmdb` or `memory` on this machine, or the address of a Redis. */
export type LogLocation = 'lmdb' | 'memory' | `redis://${string}` | `rediss://${string}`

export const logLocation: Kind = {
  schema: v.pipe(v.string(), v.check(isLocation)),
  allowed: 'lmdb, memory, or the address of a Redis, such as redis://localhost:6379',
  argument: 'name',
  offered: ['lmdb', 'memory'],
  read: (text) => text,
}

function isLocation(log: string): boolean {
  return log === 'lmdb' || log === 'memory' || (/^rediss?:\/\/./.test(log) && URL.canParse(log))
}

export function logKindOf(log: LogLocation): 'lmdb' | 'memory' | 'redis' {
  return log === 'lmdb' || log === 'memory' ? log : 'redis'
}

/** The location without the user name, the password and the parameters of an address, even of a malformed one. */
export function shownLocation(log: string): string {
  if (!/[:@?]/.test(log)) return log
  const url = URL.canParse(log) ? new URL(log) : undefined
  return url?.host ? `${url.protocol}//${url.host}${url.pathname}` : 'not shown, because it may hold a password'
}

import type { Link } from './link.ts'

/**
 * How safe an answered publish is. Where the server does not say how it flushes, the weaker is assumed. With `everysec` that
 * is its memory: while a flush is under way, for up to two seconds, Redis holds back what it writes and answers all the same.
 */
export async function durabilityOf(link: Link): Promise<'memory' | 'os' | 'disk'> {
  const config = async (name: string) => {
    const reply = await link.send('CONFIG', 'GET', name).catch(() => undefined)
    return Array.isArray(reply) ? String(reply[1]) : undefined
  }
  if ((await config('appendonly')) !== 'yes') return 'memory'
  switch (await config('appendfsync')) {
    case 'always':
      return 'disk'
    case 'no':
      return 'os'
    default:
      return 'memory'
  }
}

/**
 * The network by which limits count an address: an IPv4 address itself, or the /64 of an IPv6 address. One household has a whole
 * /64, so a limit per IPv6 address would limit nobody.
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)
  if (mapped) return mapped[1] as string
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':')
}

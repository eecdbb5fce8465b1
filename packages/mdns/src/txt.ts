/** The TXT entries of a service, by key. A key without a value has null. */
export type Txt = Readonly<Record<string, string | null>>

/**
 * Reads the strings of a TXT record (RFC 6763, section 6). Keys are printable ASCII; of two keys that differ only in
 * case, the first counts. Values are bytes that anybody on the network can choose. They are read as UTF-8, and invalid
 * bytes become U+FFFD. A record that is too long for a packet of mDNS counts as empty.
 */
export function readTxt(strings: readonly Uint8Array[]): Txt {
  const values = new Map<string, [key: string, value: string | null]>()
  if (strings.reduce((sum, { length }) => sum + length, 0) > maxBytes) return {}
  for (const bytes of strings.slice(0, maxStrings)) {
    const mark = bytes.indexOf(equals)
    const key = Buffer.from(mark === -1 ? bytes : bytes.subarray(0, mark)).toString('latin1')
    const known = key.toLowerCase()
    if (!/^[\x20-\x7e]+$/.test(key) || values.has(known)) continue
    values.set(known, [key, mark === -1 ? null : decoder.decode(bytes.subarray(mark + 1))])
  }
  // Sorted by key: the same entries in another order are no change.
  const sorted = [...values].sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([, entry]) => entry))
}

/** About how much memory the entries take. */
export function textBytes(txt: Txt): number {
  let bytes = 0
  for (const [key, value] of Object.entries(txt)) bytes += entryBytes + key.length + (value?.length ?? 0)
  return bytes
}

const entryBytes = 40
// RFC 6762, section 17: no packet is longer than 9,000 bytes.
const maxBytes = 9000
const equals = '='.charCodeAt(0)
// More than any packet of a real service holds.
const maxStrings = 256
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** What a service says of itself, by key. A key that stands without a value has null. */
export type Txt = Readonly<Record<string, string | null>>

/**
 * Reads the strings of a TXT record (RFC 6763, section 6). Keys are printable ASCII, and of two that differ in case alone the
 * first counts. Values are bytes that anybody on the network chose: they are read as UTF-8, and what is none becomes U+FFFD.
 */
export function readTxt(strings: readonly Uint8Array[]): Txt {
  const values = new Map<string, [key: string, value: string | null]>()
  for (const bytes of strings.slice(0, maxStrings)) {
    const mark = bytes.indexOf(equals)
    const key = Buffer.from(mark === -1 ? bytes : bytes.subarray(0, mark)).toString('latin1')
    const known = key.toLowerCase()
    if (!/^[\x20-\x7e]+$/.test(key) || values.has(known)) continue
    values.set(known, [key, mark === -1 ? null : decoder.decode(bytes.subarray(mark + 1))])
  }
  // In the order of the keys: a record that says the same in another order says nothing new.
  const sorted = [...values].sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([, entry]) => entry))
}

const equals = '='.charCodeAt(0)
// More than any packet of a serious service holds.
const maxStrings = 256
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The byte before the stamp. It stands once in every event and nowhere else on the wire, so counting it counts events. */
export const marker = '~'.charCodeAt(0)
export const stampDigits = 16

/** An event whose JSON is `bytes` long and tells when it was due. */
export function stampedEvent(bytes: number, dueMicros: number): { t: string; pad: string } {
  const t = `~${String(dueMicros).padStart(stampDigits, '0')}`
  return { t, pad: padding(bytes - emptyBytes) }
}

const emptyBytes = JSON.stringify({ t: '~'.padEnd(stampDigits + 1, '0'), pad: '' }).length

let lastPadding = ''

function padding(length: number): string {
  if (lastPadding.length !== length) lastPadding = 'x'.repeat(length)
  return lastPadding
}

/** Microseconds of the clock that all processes of the machine share. */
export function nowMicros(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1_000_000 + Math.floor(nanoseconds / 1000)
}

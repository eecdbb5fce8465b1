/** What a client of HTTP/2 sends before its first request: the preface, and settings that change nothing. */
export const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))])

/**
 * Requests that are each taken back right behind, in one packet: HEADERS and RST_STREAM (RFC 9113, sections 6.2 and 6.4).
 *
 * @param before - how many requests the connection has had
 */
export function resetRequests(path: string, count: number, before = 0): Buffer {
  const [isGet, isHttps] = [0x82, 0x87]
  const head = Buffer.concat([Buffer.from([isGet, isHttps]), field(':path', path), field(':authority', 'localhost')])
  const cancel = Buffer.from([0, 0, 0, 8])
  const ids = Array.from({ length: count }, (_, index) => 1 + 2 * (before + index))
  // END_STREAM and END_HEADERS.
  return Buffer.concat(ids.flatMap((id) => [frame(1, 0x05, id, head), frame(3, 0, id, cancel)]))
}

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

/** A field of a head as a literal that is not indexed (RFC 7541, section 6.2.2). */
function field(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
}

import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'

/** The stream behind a response of HTTP/2; undefined for HTTP/1. Other streams share its socket. */
export function http2StreamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as { stream?: ServerHttp2Stream }).stream
}

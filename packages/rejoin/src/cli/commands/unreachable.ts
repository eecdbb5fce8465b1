import { connect } from 'node:tls'
import { RejoinError } from '@rejoin/protocol'
import { isLoopbackHost } from '../../access/hosts.ts'
import { commandWith, type ProgramHost } from '../program-host.ts'

/** Why a hub cannot be reached, by the error of `fetch`; undefined when the connection only broke, and may work next time. */
export async function whyUnreachable(error: unknown, url: string, host: ProgramHost): Promise<RejoinError | undefined> {
  if (!nobody.includes(reasonOf(error).code)) return obstacleTo(url, error)
  const advice = isLoopbackHost(new URL(url).host)
    ? `Start one with: ${commandWith('', host)}`
    : 'Check the address, and whether the hub runs.'
  return unreachable(`No hub answers at ${url}. ${advice}`, error)
}

/** The problem with the address or the certificate of a server that answers; undefined when there is none to see. */
export async function obstacleTo(address: string, error: unknown): Promise<RejoinError | undefined> {
  const url = address.replace(/\/+$/, '')
  const { code, message } = reasonOf(error)
  if ((error as Error).name === 'AbortError' || nobody.includes(code)) return undefined
  if (/wrong version number|packet length too long/.test(message)) {
    return unreachable(`What listens at ${url} speaks no TLS. Try ${url.replace(/^https:/, 'http:')}`, error)
  }
  if (url.startsWith('http:') && (await speaksTls(new URL(url)))) {
    return unreachable(`What listens at ${url} speaks TLS. Try ${url.replace(/^http:/, 'https:')}`, error)
  }
  if (broken.includes(code)) return undefined
  const advice = untrusted.includes(code)
    ? ' If you trust the certificate, name its file: NODE_EXTRA_CA_CERTS=cert.pem'
    : ''
  return unreachable(`Cannot reach ${url}: ${message}.${advice}`, error)
}

const broken = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']
const nobody = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']
const untrusted = ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE']

/** `fetch` keeps the reason of a failure in its cause. */
function reasonOf(error: unknown): { code: string; message: string } {
  const { code, message = String(error) } = ((error as Error).cause ?? {}) as { code?: string; message?: string }
  return { code: String(code), message }
}

/** Whether a TLS handshake succeeds. The certificate is not checked, because nothing is sent. */
function speaksTls({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const socket = connect({ host, port: Number(port || 80), rejectUnauthorized: false })
    const end = (found: boolean) => {
      resolve(found)
      socket.destroy()
    }
    socket.setTimeout(handshakeMs, () => end(false))
    socket.once('secureConnect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
  })
}

const handshakeMs = 2000

function unreachable(message: string, cause: unknown): RejoinError {
  return new RejoinError(message, { code: 'unreachable', retryable: true, cause })
}

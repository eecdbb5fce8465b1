import { type ErrorCode, errorCodes, RejoinError } from '@rejoin/protocol'
import * as v from 'valibot'
import type { ProgramHost } from '../program-host.ts'
import type { HubAddress } from './hub-address.ts'
import { whyUnreachable } from './unreachable.ts'

/**
 * Sends a request to the admin API: a POST with a body, else a GET.
 *
 * @param answer - the answer of a hub; what answers otherwise is no hub
 */
export async function adminCall<Answer>(
  { url, token }: HubAddress,
  host: ProgramHost,
  path: string,
  answer: v.GenericSchema<unknown, Answer>,
  body?: object,
): Promise<Answer> {
  const headers = { ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) }
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  let response: Response
  try {
    response = await fetch(`${url}${path}`, { headers, redirect: 'error', ...sent })
  } catch (cause) {
    const broken = { code: 'unreachable', retryable: true, cause } as const
    throw (await whyUnreachable(cause, url, host)) ?? new RejoinError(`${url} did not answer. Try again.`, broken)
  }
  if (response.ok) {
    const said: unknown = await response.json().catch((cause) => {
      throw noHub(url, cause)
    })
    const read = v.safeParse(answer, said)
    if (read.success) return read.output
    throw noHub(url)
  }
  throw await rejectionOf(response, { url, ...(token === undefined ? {} : { token }) })
}

function noHub(url: string, cause?: unknown): RejoinError {
  return new RejoinError(`What answers at ${url} is no hub. Check the address.`, { code: 'not-found', cause })
}

async function rejectionOf(response: Response, { url, token }: HubAddress): Promise<RejoinError> {
  const { status } = response
  const { error }: { error?: { code: ErrorCode; message: string } } = Object(await response.json().catch(() => null))
  // A hub answers every request with JSON, so an answer without it is not from a hub.
  if (status === 404 && error === undefined) return noHub(url)
  // For a requester without rights, the admin API answers 404.
  if (status === 401 || status === 403 || status === 404) {
    const advice =
      token === undefined
        ? 'Give its token in REJOIN_ADMIN_TOKEN, or start the hub with --admin-port and say --url.'
        : 'The hub may have another token, or none. If several hubs answer at this address, each may have a token of its own: ' +
          'ask one hub by its own address.'
    return new RejoinError(`There is no admin API for you at ${url}. ${advice}`, { code: 'unauthorized' })
  }
  const code = error && errorCodes.includes(error.code) ? error.code : 'unreachable'
  return new RejoinError(error?.message ?? `${url} answers with status ${status}.`, { code, retryable: status >= 500 })
}

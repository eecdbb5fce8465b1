import type { CloseReason, EventStream, StreamState } from '@rejoin/client'
import { plainLines } from '@rejoin/hub/internal'
import { durationWords } from '../../logging/duration.ts'
import { type ExitCode, exitCodes } from '../exit-code.ts'
import { commandWith, type ProgramHost } from '../program-host.ts'
import { type HubAddress, notLetIn } from './hub-address.ts'
import type { Rejections } from './rejections.ts'

/** Writes a line on standard error for each change of the connection that a person wants to know. */
export function tellState(stream: Pick<EventStream, 'onState'>, tailed: Tailed, host: ProgramHost): void {
  const start = commandWith('', host)
  let known: Known = { isLive: false, wasLive: false }
  stream.onState((state) => {
    const news = newsOf(state, known, tailed, start)
    // A connection that has not got its `hello` yet is stale, too.
    const isLive = state.state === 'connected' && !state.stale
    known = { isLive, wasLive: known.wasLive || isLive }
    if (news !== undefined) host.stderr.write(`rejoin: ${plainLines(news)}\n`)
  })
}

interface Tailed {
  readonly url: string
  readonly channels: readonly string[]
  readonly rejections: Pick<Rejections, 'reason' | 'obstacle'>
}

interface Known {
  readonly isLive: boolean
  readonly wasLive: boolean
}

function newsOf(state: StreamState, { isLive, wasLive }: Known, tailed: Tailed, start: string): string | undefined {
  const { attempt, nextRetryAt, stale, closeReason } = state
  const { url, channels, rejections } = tailed
  if (state.state === 'connected') {
    if (stale) return isLive ? 'quiet for longer than the hub promised, looking again soon' : undefined
    if (isLive) return undefined
    return wasLive ? 'connected again' : `connected to ${url}, ${channels.join(', ')}`
  }
  if (state.state !== 'backoff' || nextRetryAt === null) return undefined
  const when = `trying again in ${durationWords(Math.max(nextRetryAt - Date.now(), 0))}`
  if (closeReason !== null) return `the hub let go (${rejections.reason ?? closeReason}), ${when}`
  if (wasLive) return attempt <= 1 ? `cut off, ${when}` : `still cut off, attempt ${attempt}, ${when}`
  if (rejections.obstacle !== undefined) {
    return attempt <= 1 ? `${rejections.obstacle} (${when})` : `still no stream from ${url}, ${when}`
  }
  return `no hub answers at ${url}, ${when}${attempt <= 1 ? `. Start one with: ${start}` : ''}`
}

/** Why a stream ended that the user did not end. */
export function explainEnd(
  reason: CloseReason | null,
  { url, token }: HubAddress,
): { message: string; exitCode: ExitCode } {
  switch (reason) {
    case 'unauthorized':
      return { message: notLetIn(token), exitCode: exitCodes.notAllowed }
    case 'http-403': {
      const message = 'You may not read all of these channels. See what you may do with: rejoin token explain'
      return { message, exitCode: exitCodes.notAllowed }
    }
    case 'wrong-content-type':
    case 'http-404':
      return { message: `There is no hub at ${url}. Check the address.`, exitCode: exitCodes.rejected }
    case 'http-400':
      return {
        message: `The hub at ${url} does not take this. Give fewer channels, or others.`,
        exitCode: exitCodes.rejected,
      }
    default:
      return { message: `The stream is over: ${reason}.`, exitCode: exitCodes.rejected }
  }
}

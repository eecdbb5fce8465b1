import { channelOf, type StormPlan } from '../../storm/plan.ts'
import type { HubAddress } from './hub-address.ts'

/**
 * Deletes the channels of a storm, so that it leaves nothing behind. Resolves with how many are left: the hub may be gone, or give
 * no such right. They stay until their windows let go of them.
 */
export async function deleteChannels(plan: StormPlan, { url, token }: HubAddress): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  let next = 0
  let kept = 0

  async function work(): Promise<void> {
    while (next < plan.channels) {
      const path = channelOf(plan, next).split('/').map(encodeURIComponent).join('/')
      next += 1
      const signal = AbortSignal.timeout(timeoutMs)
      const answer = await fetch(`${url}/channels/${path}`, { method: 'DELETE', headers, signal }).catch(
        () => undefined,
      )
      await answer?.arrayBuffer().catch(() => undefined)
      // A hub that does not answer the first will not answer the rest.
      if (!answer?.ok) kept += 1
      if (!answer) next = plan.channels
    }
  }

  await Promise.all(Array.from({ length: atOnce }, work))
  return kept
}

const atOnce = 8
const timeoutMs = 5000

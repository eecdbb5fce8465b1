import { channelOf, type StormPlan } from '@rejoin/storm'
import type { HubAddress } from './hub-address.ts'

/**
 * Deletes the channels of a storm, so that the storm leaves no events behind. Resolves with how many channels could not be
 * deleted, because the hub is gone or gives no right to. Their events stay until their windows drop them.
 */
export async function deleteChannels(plan: StormPlan, { url, token }: HubAddress): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  let next = 0
  let deleted = 0

  async function work(): Promise<void> {
    while (next < plan.channels) {
      const path = channelOf(plan, next).split('/').map(encodeURIComponent).join('/')
      next += 1
      const signal = AbortSignal.timeout(timeoutMs)
      const answer = await fetch(`${url}/channels/${path}`, { method: 'DELETE', headers, signal }).catch(
        () => undefined,
      )
      await answer?.arrayBuffer().catch(() => undefined)
      if (answer?.ok) deleted += 1
      // A hub that does not answer once will not answer the rest.
      if (!answer) next = plan.channels
    }
  }

  await Promise.all(Array.from({ length: atOnce }, work))
  return plan.channels - deleted
}

const atOnce = 8
const timeoutMs = 5000

import type { Hub } from '@rejoin/hub'

/** Publishes numbers one after the other and returns their ids. */
export async function publish(hub: Hub, channel: string, ...numbers: number[]): Promise<string[]> {
  const ids: string[] = []
  for (const data of numbers) ids.push((await hub.publish(channel, { data })).id)
  return ids
}

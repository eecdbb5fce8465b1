import { addCheer } from '../../cheers.js'
import { openHub } from '../../hub.js'

export async function POST() {
  const hub = await openHub()
  // The state first, then the event: what a page loads is at least as new as its cursor.
  const total = addCheer()
  const { id } = await hub.publish('cheers', { type: 'cheer', data: { total } })
  return Response.json({ id })
}

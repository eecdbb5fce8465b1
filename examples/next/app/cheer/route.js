import { openHub } from '../../hub.js'

export async function POST() {
  const hub = await openHub()
  const { id } = await hub.publish('cheers', { type: 'cheer', data: { at: Date.now() } })
  return Response.json({ id })
}

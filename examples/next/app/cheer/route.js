import { hub } from '../../hub.js'

export async function POST() {
  const { id } = await hub.publish('cheers', { type: 'cheer', data: { at: Date.now() } })
  return Response.json({ id })
}

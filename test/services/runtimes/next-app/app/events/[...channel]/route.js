import { subscribe } from '@rejoin/hub/fetch'
import { hub } from '../../../hub.js'

export const GET = subscribe(hub, {
  channels: async (_request, { params }) => (await params).channel.join('/'),
})

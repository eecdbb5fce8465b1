import { subscribe } from '@rejoin/hub/fetch'
import { openHub } from '../../../hub.js'

export const GET = subscribe(openHub, {
  channels: async (_request, { params }) => (await params).channel.join('/'),
})

import { fetchHandler } from '@rejoin/hub/fetch'
import { hub } from '../../../hub.js'

export const GET = fetchHandler(hub)

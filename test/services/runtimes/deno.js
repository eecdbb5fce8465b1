// A hub in Deno, as the guide has it.
import { fetchHandler } from '@rejoin/hub/fetch'
import { openTalkingHub } from './talking-hub.js'

const hub = await openTalkingHub(Deno.env.toObject())
const onListen = ({ port }) => console.log(JSON.stringify({ kind: 'listening', port, version: Deno.version.deno }))
const options = { port: 0, hostname: '127.0.0.1', onListen }
Deno.serve(options, fetchHandler(hub, { ip: (_request, info) => info.remoteAddr.hostname }))

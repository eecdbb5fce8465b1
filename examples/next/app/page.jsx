import { countCheers } from '../cheers.js'
import { openHub } from '../hub.js'
import { Cheers } from './cheers.jsx'

// Rendered for each request: a build has no hub.
export const dynamic = 'force-dynamic'

export default async function Page() {
  const hub = await openHub()
  const cursor = await hub.cursor('cheers')
  return <Cheers cursor={cursor} total={countCheers()} />
}

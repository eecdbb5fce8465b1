import { nodeHandler } from '@rejoin/hub/node'
import { describe } from 'vitest'
import { adapterContract, bearer } from './contract.ts'

describe("Node's own HTTP server", () => {
  adapterContract(
    (hub, { prefix, authorize, before }) => {
      const handler = nodeHandler(hub, {
        basePath: prefix,
        ...(authorize ? { authorize: ({ headers }) => authorize(bearer(headers.authorization)) } : {}),
      })
      return (request, response) => {
        before?.(response)
        handler(request, response)
      }
    },
    { hasErrorHandler: false },
  )
})

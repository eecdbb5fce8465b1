import { describe } from 'vitest'
import { thirdPartyContract } from './third-party-contract.ts'
import { eventsource, eventsourceClient, undici } from './third-party-npm.ts'

describe.concurrent('eventsource, of npm', () => {
  thirdPartyContract(eventsource, {
    returnsAfterEnd: true,
    countsCutIds: false,
    at204: 'stops',
    at503: 'stops',
    unaskedMs: 3000,
    comments: 'hidden',
  })
})

describe.concurrent('eventsource-client', () => {
  thirdPartyContract(eventsourceClient, {
    returnsAfterEnd: true,
    countsCutIds: false,
    at204: 'stops',
    at503: 'returns',
    unaskedMs: 2000,
    comments: 'hidden',
  })
})

describe.concurrent('the EventSource of undici', () => {
  thirdPartyContract(undici, {
    returnsAfterEnd: true,
    countsCutIds: false,
    at204: 'stops',
    at503: 'stops',
    unaskedMs: 3000,
    comments: 'hidden',
  })
})

import { describe } from 'vitest'
import { eventSourceHabits, thirdPartyContract } from './contract.ts'
import { eventsource, eventsourceClient, undici } from './npm.ts'

describe.concurrent('eventsource, of npm', () => {
  thirdPartyContract(eventsource, eventSourceHabits)
})

describe.concurrent('eventsource-client', () => {
  thirdPartyContract(eventsourceClient, { ...eventSourceHabits, at503: 'returns', unaskedMs: 2000 })
})

describe.concurrent('the EventSource of undici', () => {
  thirdPartyContract(undici, eventSourceHabits)
})

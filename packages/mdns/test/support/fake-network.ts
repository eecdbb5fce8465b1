import type { DnsRecord, Listener, OpenNetwork, Query } from '../../src/network.ts'

/** A link without a socket: the test says what comes in, and sees what goes out. */
export interface FakeNetwork {
  readonly open: OpenNetwork
  readonly asked: Query[]
  /** Called with each query that goes out. */
  onAsk(query: Query): void
  /** One packet from the network. */
  answer(...records: readonly DnsRecord[]): void
}

export function fakeNetwork(): FakeNetwork {
  const asked: Query[] = []
  let listener: Listener | undefined
  const network: FakeNetwork = {
    asked,
    onAsk: () => undefined,
    async open(given) {
      listener = given
      return {
        ask(query) {
          asked.push(query)
          network.onAsk(query)
        },
        close: async () => undefined,
      }
    },
    answer(...records) {
      listener?.heard()
      listener?.answered(records, '10.0.0.7')
    },
  }
  return network
}

import type { SubscribeOptions } from './options.ts'
import type { Channels } from './subscribe.ts'

/**
 * The channels of a stream at a path of the program's own: those that the program says, else the one that the route's
 * pattern has matched.
 */
export function askedChannels<Call extends readonly unknown[]>(
  { channels, moreChannels = false }: SubscribeOptions<Call>,
  params: unknown,
  ...call: Call
): () => Channels | Promise<Channels> {
  if (channels) return async () => [await channels(...call)].flat()
  return () => {
    const matched = matchedChannel(params)
    // A list, which the query has no say in: what guards the route has seen its pattern's channel and no other.
    return matched === '' || moreChannels ? matched : [matched]
  }
}

/**
 * Its parameter `channel`, else its wildcard, under the names that Express 4 and Fastify give it; '' for none. Express 5
 * gives the segments of a wildcard one by one.
 */
function matchedChannel(params: unknown): string {
  const { channel, '*': rest, 0: first } = params as Readonly<Record<string, string | readonly string[] | undefined>>
  const matched = channel ?? rest ?? first ?? ''
  return typeof matched === 'string' ? matched : matched.join('/')
}

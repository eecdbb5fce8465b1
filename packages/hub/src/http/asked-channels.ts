import type { SubscribeOptions } from './options.ts'
import type { Channels } from './subscribe.ts'

/**
 * The channels of a stream at a route of the program's own: the channels that the option `channels` gives, else the channel
 * that the route's pattern matched.
 */
export function askedChannels<Call extends readonly unknown[]>(
  { channels, moreChannels = false }: SubscribeOptions<Call>,
  params: unknown,
  ...call: Call
): () => Channels | Promise<Channels> {
  if (channels) return async () => [await channels(...call)].flat()
  return () => {
    const matched = matchedChannel(params)
    // A list, so that the query cannot add channels: a guard of the route has seen only the matched channel.
    return matched === '' || moreChannels ? matched : [matched]
  }
}

/**
 * The route's parameter `channel`, else its wildcard: `*` in Fastify, `0` in Express 4; '' without either. Express 5 gives a
 * wildcard as a list of segments.
 */
function matchedChannel(params: unknown): string {
  const { channel, '*': rest, 0: first } = params as Readonly<Record<string, string | readonly string[] | undefined>>
  const matched = channel ?? rest ?? first ?? ''
  return typeof matched === 'string' ? matched : matched.join('/')
}

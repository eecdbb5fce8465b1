import { type ChannelSchemas, type CheckedMessage, createSchemaCheck, type SchemaCheck } from '@rejoin/protocol'

/**
 * Holds what is to be published against the schemas of its channels, and rejects with what does not fit. It is a chunk of its own,
 * which a page without schemas does not load.
 */
export async function checkSchemas(schemas: ChannelSchemas, content: Content | readonly Content[]): Promise<void> {
  const check = checks.get(schemas) ?? createSchemaCheck(schemas)
  checks.set(schemas, check)
  for (const message of [content].flat() as Content[]) await check(message.channel, message)
}

type Content = CheckedMessage & { readonly channel: string }

const checks = new WeakMap<ChannelSchemas, SchemaCheck>()

import { type ChannelSchemas, type CheckedMessage, createSchemaCheck, type SchemaCheck } from '@rejoin/protocol'

/**
 * Checks messages against the schemas of their channels, and rejects when one does not fit. It is a separate chunk,
 * which a page without schemas does not load.
 */
export async function checkSchemas(schemas: ChannelSchemas, content: Content | readonly Content[]): Promise<void> {
  const check = checks.get(schemas) ?? createSchemaCheck(schemas)
  checks.set(schemas, check)
  for (const message of [content].flat() as Content[]) await check(message.channel, message)
}

type Content = CheckedMessage & { readonly channel: string }

const checks = new WeakMap<ChannelSchemas, SchemaCheck>()

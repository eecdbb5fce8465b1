import type { ChannelSchemas } from './channel-types.ts'
import { RejoinError } from './errors.ts'
import type { Schemas } from './schema.ts'

/**
 * Checks messages against the schemas of their channels before they are published. The output of a schema is not used:
 * readers get the data as it was published, and apply their own schemas.
 */
export function createSchemaCheck(schemas: ChannelSchemas): SchemaCheck {
  const templates = Object.entries(schemas).map(([template, types]) => ({
    matches: matcherOf(template),
    template,
    types,
  }))

  async function check(channel: string, { type = 'message', data, text }: CheckedMessage): Promise<void> {
    const declared = Object.hasOwn(schemas, channel)
      ? schemas[channel]
      : templates.find(({ matches }) => matches.test(channel))?.types
    if (!declared) return
    const schema = schemaOf(declared, channel, type)
    const { issues } = await schema['~standard'].validate(data === undefined ? text : data)
    if (!issues) return
    const found = issues.map(({ message, path = [] }) => `${pathText(path)}${message}`).join('; ')
    throw new RejoinError(
      `The data of ${type} in ${channel} does not fit its schema. ${found}. Nothing was published.`,
      {
        code: 'invalid-data',
      },
    )
  }

  return check
}

/** Rejects a message that does not fit, and says why. A channel without schemas takes any message. */
export type SchemaCheck = (channel: string, message: CheckedMessage) => Promise<void>

export interface CheckedMessage {
  readonly type?: string | undefined
  readonly data?: unknown
  /** Checked when there is no `data`. */
  readonly text?: string | undefined
}

function schemaOf(declared: Schemas, channel: string, type: string): Schemas[string] {
  const schema = Object.hasOwn(declared, type) ? declared[type] : undefined
  if (schema) return schema
  throw new RejoinError(
    `${channel} has no events of the type ${JSON.stringify(type)}. Its schemas have: ${Object.keys(declared).join(', ')}.`,
    { code: 'invalid-type' },
  )
}

/** `:id` stands for one segment of a name. */
function matcherOf(template: string): RegExp {
  const parts = template.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : part.replace(/[^\w]/g, '\\$&')))
  return new RegExp(`^${parts.join('/')}$`)
}

function pathText(path: readonly unknown[]): string {
  const keys = path.map((step) => String((step as { key?: unknown } | null)?.key ?? step))
  return keys.length > 0 ? `${keys.join('.')}: ` : ''
}

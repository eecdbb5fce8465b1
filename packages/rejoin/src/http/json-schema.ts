import type * as v from 'valibot'
import type { Schema } from './openapi.ts'

/**
 * The JSON schema of a Valibot schema, for `openapi.json`, so that the document states exactly what is checked. Knows only the
 * parts that the bodies of this program use, and throws for any other.
 */
export function jsonSchemaOf(schema: v.GenericSchema): Schema {
  const { pipe } = schema as { pipe?: readonly Part[] }
  if (!pipe) return ofType(schema as unknown as Part)
  const [first, ...actions] = pipe
  return Object.assign({}, ofType(first as Part), ...actions.map(ofAction))
}

interface Part {
  readonly type: string
  readonly kind: 'schema' | 'validation' | 'metadata' | 'transformation'
  readonly entries?: Readonly<Record<string, v.GenericSchema>>
  readonly item?: v.GenericSchema
  readonly wrapped?: v.GenericSchema
  readonly literal?: unknown
  readonly options?: readonly unknown[]
  readonly default?: unknown
  readonly requirement?: unknown
  readonly description?: string
}

function ofType(part: Part): Schema {
  switch (part.type) {
    case 'string':
    case 'boolean':
    case 'number':
      return { type: part.type }
    case 'literal':
      return { const: part.literal }
    case 'picklist':
      return { enum: part.options }
    case 'array':
      return { type: 'array', items: jsonSchemaOf(part.item as v.GenericSchema) }
    case 'optional':
    case 'nullish':
      return {
        ...jsonSchemaOf(part.wrapped as v.GenericSchema),
        ...(part.default !== undefined && { default: part.default }),
      }
    case 'object':
      return ofObject(part.entries ?? {})
    default:
      throw new TypeError(`No JSON schema is known for the type ${part.type}.`)
  }
}

function ofObject(entries: Readonly<Record<string, v.GenericSchema>>): Schema {
  const names = Object.keys(entries)
  const properties = Object.fromEntries(names.map((name) => [name, jsonSchemaOf(entries[name] as v.GenericSchema)]))
  const required = names.filter((name) => !['optional', 'nullish'].includes(entries[name]?.type ?? ''))
  return { type: 'object', properties, required }
}

function ofAction({ type, requirement, description }: Part): Schema {
  switch (type) {
    case 'description':
      return { description }
    case 'safe_integer':
      return { type: 'integer' }
    case 'min_value':
      return { minimum: requirement }
    case 'max_value':
      return { maximum: requirement }
    case 'non_empty':
      return { minLength: 1 }
    case 'max_length':
      return { maxItems: requirement }
    case 'check':
      return {}
    default:
      throw new TypeError(`No JSON schema is known for the action ${type}.`)
  }
}

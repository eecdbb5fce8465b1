import type { Route } from './routes.ts'

/** The part of `openapi.json` about one path and method. */
export interface OperationDoc {
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly ParameterDoc[]
  /** The schema of the request's JSON body. */
  readonly body?: Schema
  readonly answers: Readonly<Record<number, AnswerDoc>>
}

export interface ParameterDoc {
  readonly name: string
  readonly in: 'query' | 'header' | 'path'
  readonly description: string
  readonly required?: boolean
  readonly schema: Schema
}

export type AnswerDoc = Readonly<Record<string, unknown>>
export type Schema = Readonly<Record<string, unknown>>
export type PathDocs = Readonly<Record<string, Readonly<Record<string, OperationDoc>>>>

/** Describes a parameter of the query; without a schema, a text. */
export function queryParameter(name: string, description: string, schema: Schema = { type: 'string' }): ParameterDoc {
  return { name, in: 'query', description, schema }
}

/** Describes an answer in JSON. */
export function json(description: string, schema: Schema): AnswerDoc {
  return { description, content: { 'application/json': { schema } } }
}

/** Describes the rejection that every wrong request gets (§5.7). */
export const rejectionDoc = json('Why the request was rejected, and what to do about it.', {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' } },
    },
  },
})

/** The document at `/openapi.json`: the routes of the program, and `others`, such as the paths of the hub. */
export function openApiDocument(routes: readonly Route[], others: PathDocs, version: string): Schema {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const [path, operations] of Object.entries(others)) {
    for (const [method, doc] of Object.entries(operations)) {
      paths[path] = { ...paths[path], [method]: operation(doc, 'to-all') }
    }
  }
  for (const { path, method, open, doc } of routes) {
    if (doc) paths[path] = { ...paths[path], [method.toLowerCase()]: operation(doc, open) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Rejoin',
      version,
      description: 'Resumable event streams over Server-Sent Events. PROTOCOL.md defines the content of the streams.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    paths,
    components: { securitySchemes: { admin: { type: 'http', scheme: 'bearer', description: 'The admin token.' } } },
  }
}

function operation({ summary, description, parameters, body, answers }: OperationDoc, open: Route['open']): Schema {
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    ...(open === 'to-admins' ? { tags: ['admin'], security: [{ admin: [] }] } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: answers,
  }
}

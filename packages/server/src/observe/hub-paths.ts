import { type AnswerDoc, json, type OperationDoc, type ParameterDoc, type PathDocs, refusalDoc } from './openapi.ts'

/** What the hub itself answers, for `openapi.json`. PROTOCOL.md is the longer and the binding text. */
export function hubPaths(): PathDocs {
  const paths: Record<string, Record<string, OperationDoc>> = {}
  for (const door of ['events', 'stream']) {
    paths[`/${door}/{channel}`] = { get: { ...stream, parameters: [channelInPath, ...reading, ...streaming] } }
    paths[`/${door}`] = { get: { ...stream, parameters: [...reading, ...streaming] } }
  }
  paths['/poll/{channel}'] = { get: { ...poll, parameters: [channelInPath, ...reading, waitMs] } }
  paths['/poll'] = { get: { ...poll, parameters: [...reading, waitMs] } }
  paths['/publish/{channel}'] = { post: { ...publishText, parameters: [channelInPath, typeOfEvent, idempotencyKey] } }
  paths['/publish'] = { post: { ...publishEnvelope, parameters: [idempotencyKey] } }
  return paths
}

const text = { type: 'string' }

function query(name: string, description: string, schema: ParameterDoc['schema'] = text): ParameterDoc {
  return { name, in: 'query', description, schema }
}

const channelInPath: ParameterDoc = {
  ...{ name: 'channel', in: 'path', required: true, schema: text },
  description: 'The channel; its slashes may stand as they are.',
}
const typeOfEvent = query('type', 'The type of the event; left out, `message`.')
const idempotencyKey: ParameterDoc = {
  ...{ name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } },
  description: 'Publishes at most once under this key.',
}
const waitMs = query('waitMs', 'How long to wait for something to say.', { type: 'integer', maximum: 60_000 })
const manyTexts = { type: 'array', items: text }
const reading: ParameterDoc[] = [
  query('channel', 'A channel; repeated for several, at most 100.', manyTexts),
  query('type', 'Lets only events of this type through; repeated for several.', manyTexts),
  query('lastEventId', 'The last id that was seen, or `earliest`; for those who cannot send the header.'),
  query('replay', 'Without a cursor: how many of the last events come first.', { type: 'integer' }),
  {
    ...{ name: 'Last-Event-ID', in: 'header', schema: text },
    description: 'The last id that was seen. Everything after it follows.',
  },
]
const streaming: ParameterDoc[] = [
  query('reject', 'With `status`, a reader for whom there is no room gets 503 and not a stream that ends.', {
    const: 'status',
  }),
  query('heartbeat', 'With `event`, heartbeats are events that a page can see.', { const: 'event' }),
]

const refused: Record<number, AnswerDoc> = { 400: refusalDoc, 401: refusalDoc, 403: refusalDoc, 503: refusalDoc }

const stream: OperationDoc = {
  summary: 'Read a stream of events, from where you were',
  answers: { 200: { description: 'The stream.', content: { 'text/event-stream': { schema: text } } }, ...refused },
}

const poll: OperationDoc = {
  summary: 'The same events as JSON, a piece at a time',
  answers: {
    200: json('What there is, with the cursor of the next poll.', {
      type: 'object',
      required: ['events', 'cursor', 'retryMs'],
      properties: {
        events: {
          type: 'array',
          items: {
            type: 'object',
            properties: { id: { type: ['string', 'null'] }, type: text, data: text },
          },
        },
        cursor: { type: ['string', 'null'] },
        retryMs: { type: 'number' },
      },
    }),
    ...refused,
  },
}

const published = json('It is in the log, as safe as `durability` says.', {
  type: 'object',
  properties: {
    id: text,
    events: { type: 'array', items: { type: 'object', properties: { id: text } } },
    durability: { enum: ['memory', 'os', 'disk', 'replicated'] },
  },
})

const publishRefused = { ...refused, 413: refusalDoc, 422: refusalDoc, 429: refusalDoc }

const publishText: OperationDoc = {
  summary: 'Publish one event whose data is the body',
  answers: { 201: published, ...publishRefused },
}

const envelope = {
  type: 'object',
  required: ['channel'],
  properties: { channel: text, type: text, data: { description: 'Any JSON value.' }, text },
  description: 'With either `data` or `text`.',
}

const publishEnvelope: OperationDoc = {
  summary: 'Publish one event, or several of which all or none are taken',
  body: { oneOf: [envelope, { type: 'array', items: envelope, minItems: 1, maxItems: 1000 }] },
  answers: { 201: published, ...publishRefused },
}

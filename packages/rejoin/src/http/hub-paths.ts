import { type AnswerDoc, json, type OperationDoc, type ParameterDoc, type PathDocs, rejectionDoc } from './openapi.ts'

/** The paths of the hub itself, for `openapi.json`. PROTOCOL.md is the binding text. */
export function hubPaths(): PathDocs {
  const paths: Record<string, Record<string, OperationDoc>> = {}
  for (const endpoint of ['events', 'stream']) {
    paths[`/${endpoint}/{channel}`] = { get: { ...stream, parameters: [channelInPath, ...reading, ...streaming] } }
    paths[`/${endpoint}`] = { get: { ...stream, parameters: [...reading, ...streaming] } }
  }
  paths['/poll/{channel}'] = { get: { ...poll, parameters: [channelInPath, ...reading, waitMs] } }
  paths['/poll'] = { get: { ...poll, parameters: [...reading, waitMs] } }
  const ofEvent = [channelInPath, ...eventFields, idempotencyKey]
  paths['/publish/{channel}'] = { post: { ...publishText, parameters: ofEvent } }
  paths['/publish'] = { post: { ...publishEnvelope, parameters: [idempotencyKey] } }
  paths['/channels/{channel}'] = { delete: { ...remove, parameters: [channelInPath] } }
  paths['/end/{channel}'] = { post: { ...end, parameters: [channelInPath] } }
  return paths
}

const text = { type: 'string' }

function query(name: string, description: string, schema: ParameterDoc['schema'] = text): ParameterDoc {
  return { name, in: 'query', description, schema }
}

const channelInPath: ParameterDoc = {
  name: 'channel',
  in: 'path',
  required: true,
  schema: text,
  description: 'The channel; its slashes may stand as they are.',
}
const flag = { type: 'string', description: 'Set, unless its value is `false`.' }
const eventFields = [
  query('type', 'The type of the event; left out, `message`.'),
  query('key', 'What it is the newest value of, in a channel that retains values.'),
  query('forget', 'Nothing is retained under its key from then on.', flag),
  query('live', 'For those who read at this moment only; it is not kept.', flag),
]
const idempotencyKey: ParameterDoc = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', maxLength: 255 },
  description: 'Publishes at most once under this key.',
}
const waitMs = query('waitMs', 'How long to wait for something to say.', { type: 'integer', maximum: 60_000 })
const manyTexts = { type: 'array', items: text }
const reading: ParameterDoc[] = [
  query('channel', 'A channel, or a pattern such as `orders/*`; repeated for several, at most 100.', manyTexts),
  query('type', 'Lets only events of this type through; repeated for several.', manyTexts),
  query('lastEventId', 'The last id that was seen, or `earliest`; for those who cannot send the header.'),
  query('added', 'One of the channels that the cursor is not of, because it was added since.', manyTexts),
  query('show', 'Lets every event say which channel it is of.', { enum: ['channel', 'envelope'] }),
  query('replay', 'Without a cursor: how many of the last events come first.', { type: 'integer' }),
  {
    name: 'Last-Event-ID',
    in: 'header',
    schema: text,
    description: 'The last id that was seen. Everything after it follows.',
  },
]
const streaming: ParameterDoc[] = [
  query('reject', 'With `status`, a reader for whom there is no room gets 503 and not a stream that ends.', {
    const: 'status',
  }),
  query('heartbeat', 'With `event`, heartbeats are events that a page can see.', { const: 'event' }),
]

const nothingMore = { description: 'Every channel has ended, and the reader has all of it.' }
const rejected: Record<number, AnswerDoc> = {
  400: rejectionDoc,
  401: rejectionDoc,
  403: rejectionDoc,
  503: rejectionDoc,
}

const readerRejected = { ...rejected, 410: rejectionDoc }

const stream: OperationDoc = {
  summary: 'Read a stream of events, from where you were',
  answers: {
    200: { description: 'The stream.', content: { 'text/event-stream': { schema: text } } },
    204: nothingMore,
    ...readerRejected,
  },
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
            properties: { id: { type: ['string', 'null'] }, type: text, data: text, channel: text },
          },
        },
        cursor: { type: ['string', 'null'] },
        retryMs: { type: 'number' },
      },
    }),
    204: nothingMore,
    ...readerRejected,
  },
}

const receipt = {
  type: 'object',
  properties: {
    id: text,
    events: { type: 'array', items: { type: 'object', properties: { id: text } } },
    durability: { enum: ['none', 'memory', 'os', 'disk', 'replicated'] },
  },
}
const published: Record<number, AnswerDoc> = {
  201: json('It is in the log, as safe as `durability` says.', receipt),
  202: json('The log is away. The hub has sent the event to its own readers, and does not keep it.', receipt),
}

const publisherRejected = { ...rejected, 429: rejectionDoc }
const publishRejected = { ...publisherRejected, 409: rejectionDoc, 413: rejectionDoc, 422: rejectionDoc }

const publishText: OperationDoc = {
  summary: 'Publish one event whose data is the body',
  answers: { ...published, ...publishRejected },
}

const envelope = {
  type: 'object',
  required: ['channel'],
  properties: {
    channel: text,
    type: text,
    data: { description: 'Any JSON value.' },
    text,
    key: text,
    forget: { type: 'boolean' },
    live: { type: 'boolean' },
  },
  description: 'With either `data` or `text`.',
}

const publishEnvelope: OperationDoc = {
  summary: 'Publish one event, or several of which all or none are taken',
  body: { oneOf: [envelope, { type: 'array', items: envelope, minItems: 1, maxItems: 1000 }] },
  answers: { ...published, ...publishRejected },
}

const ended: Record<number, AnswerDoc> = {
  200: json('It has ended, at this id.', { type: 'object', properties: { id: text } }),
  ...publisherRejected,
}

const remove: OperationDoc = {
  summary: 'Delete a channel: end it and remove all its events; its readers are told, and later ones get 410',
  answers: ended,
}

const end: OperationDoc = {
  summary: 'End a channel: nothing can be published to it any more, and its readers are told when they have all of it',
  answers: ended,
}

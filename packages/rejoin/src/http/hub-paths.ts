import {
  type AnswerDoc,
  json,
  type OperationDoc,
  type ParameterDoc,
  type PathDocs,
  queryParameter,
  rejectionDoc,
} from './openapi.ts'

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

const channelInPath: ParameterDoc = {
  name: 'channel',
  in: 'path',
  required: true,
  schema: text,
  description: 'The name of the channel. Slashes in it need no escaping.',
}
const flag = { type: 'string', description: 'Present means yes, unless the value is `false`.' }
const eventFields = [
  queryParameter('type', 'The type of the event. Default: `message`.'),
  queryParameter('key', 'The key under which the channel retains this event as the newest value.'),
  queryParameter('forget', 'Publishes the event, and from then on the channel retains nothing under its key.', flag),
  queryParameter('live', 'Sends the event to connected readers only. The log does not keep it.', flag),
]
const idempotencyKey: ParameterDoc = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', maxLength: 255 },
  description: 'A request that is repeated with the same key publishes its events only once.',
}
const waitMs = queryParameter(
  'waitMs',
  'How long the hub waits for an event before it answers, in milliseconds. Default: 25000.',
  { type: 'integer', maximum: 60_000 },
)
const manyTexts = { type: 'array', items: text }
const reading: ParameterDoc[] = [
  queryParameter(
    'channel',
    'A channel, or a pattern such as `orders/*`. Repeat it for several, at most 100.',
    manyTexts,
  ),
  queryParameter('type', 'Sends only events of this type. Repeat it for several.', manyTexts),
  queryParameter('lastEventId', 'The cursor, or `earliest`. For clients that cannot send `Last-Event-ID`.'),
  queryParameter('added', 'A channel that was added after the cursor was given. Repeat it for several.', manyTexts),
  queryParameter(
    'show',
    'Adds the name of the channel to every event: as a field, or in an envelope around the data.',
    {
      enum: ['channel', 'envelope'],
    },
  ),
  queryParameter('replay', 'How many of the newest events come first. Only for a request without a cursor.', {
    type: 'integer',
  }),
  {
    name: 'Last-Event-ID',
    in: 'header',
    schema: text,
    description: 'The cursor: the last id that the reader received. All events after it follow.',
  },
]
const streaming: ParameterDoc[] = [
  queryParameter(
    'reject',
    'With `status`, a reader that the hub has no room for gets 503, and not a stream that ends at once.',
    {
      const: 'status',
    },
  ),
  queryParameter(
    'waitMs',
    'With it, the request is a poll, and gets the answer of `/poll`: how long the hub waits for an event, in milliseconds.',
    { type: 'integer', maximum: 60_000 },
  ),
  queryParameter('heartbeat', 'With `event`, heartbeats are events that a page can see, and not comments.', {
    const: 'event',
  }),
]

const nothingMore = { description: 'All channels have ended, and the reader has all their events.' }
const rejected: Record<number, AnswerDoc> = {
  400: rejectionDoc,
  401: rejectionDoc,
  403: rejectionDoc,
  503: rejectionDoc,
}

const readerRejected = { ...rejected, 410: rejectionDoc }

const stream: OperationDoc = {
  summary: 'Read a stream of events, from a cursor or from now',
  answers: {
    200: { description: 'The stream.', content: { 'text/event-stream': { schema: text } } },
    204: nothingMore,
    ...readerRejected,
  },
}

const poll: OperationDoc = {
  summary: 'Poll for events: read the events of a stream as JSON, some at a time',
  answers: {
    200: json('The events, and the cursor for the next poll.', {
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
    repeated: { type: 'boolean' },
  },
}
const published: Record<number, AnswerDoc> = {
  201: json('The events are in the log. `durability` says where they are stored.', receipt),
  202: json('The log is away. The hub has sent the events to its own readers, and does not keep them.', receipt),
}

const publisherRejected = { ...rejected, 429: rejectionDoc }
const publishRejected = { ...publisherRejected, 409: rejectionDoc, 413: rejectionDoc, 422: rejectionDoc }

const publishText: OperationDoc = {
  summary: 'Publish one event whose data is the body: text as `text/plain`, else JSON where the body is JSON',
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
  description: 'One event. Give either `data` or `text`.',
}

const publishEnvelope: OperationDoc = {
  summary: 'Publish one event, or a batch: all of its events are stored, or none',
  body: { oneOf: [envelope, { type: 'array', items: envelope, minItems: 1, maxItems: 1000 }] },
  answers: { ...published, ...publishRejected },
}

const ended: Record<number, AnswerDoc> = {
  200: json('The channel has ended, at the position of this id.', { type: 'object', properties: { id: text } }),
  ...publisherRejected,
}

const remove: OperationDoc = {
  summary: 'Delete a channel: end it and remove all its events. Its readers are told; later readers get 410',
  answers: ended,
}

const end: OperationDoc = {
  summary: 'End a channel: it takes no more events. Its readers are told when they have all its events',
  answers: ended,
}

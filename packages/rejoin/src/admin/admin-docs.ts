import {
  json,
  type OperationDoc,
  type ParameterDoc,
  queryParameter,
  rejectionDoc,
  type Schema,
} from '../http/openapi.ts'

/** The text of `openapi.json` for the routes in admin-routes.ts. */

const text = { type: 'string' }
const count = { type: 'integer', minimum: 0 }
const id = { type: ['string', 'null'] }
const time = { type: ['integer', 'null'], description: 'ms since 1970' }

const windowFields = {
  events: count,
  bytes: count,
  oldest: id,
  newest: id,
  oldestAt: time,
  newestAt: time,
  ended: { type: 'boolean' },
  limits: {
    type: 'object',
    properties: { maxEvents: count, maxAgeMs: count, maxBytes: count },
    description:
      'The limits of the window: those set for the channel, for the narrowest pattern that covers it, or for the log.',
  },
}

const limit = queryParameter('limit', 'The most items in the answer. Default: 100.', {
  type: 'integer',
  minimum: 1,
  maximum: 1000,
})
const theChannel: ParameterDoc = {
  ...queryParameter('channel', 'The name of the channel.'),
  required: true,
}

function answers(description: string, properties: Schema, status = 200): OperationDoc['answers'] {
  return { [status]: json(description, { type: 'object', properties }), 400: rejectionDoc }
}

export const channels: OperationDoc = {
  summary: 'List the channels of the log, by name',
  parameters: [
    queryParameter('prefix', 'Lists only channels whose names begin with this.'),
    queryParameter('after', 'The `next` of the page before.'),
    limit,
  ],
  answers: answers('A page of channels, with the window of each.', {
    channels: { type: 'array', items: { type: 'object', properties: { channel: text, ...windowFields } } },
    next: id,
  }),
}

const theSelector: ParameterDoc = {
  ...theChannel,
  description: 'The name of a channel, or a pattern.',
}

const stateFields = {
  channel: text,
  ...windowFields,
  readers: {
    ...count,
    description: 'Readers of the channel on this hub. Readers that ask for it by a pattern count, too.',
  },
  entries: {
    type: 'array',
    description: 'The newest events in the window, oldest first. `limit` says how many.',
    items: { type: 'object', properties: { id: text, channel: text, type: text, at: time, bytes: count } },
  },
}

export const window: OperationDoc = {
  summary: 'The events that a channel, or all channels of a pattern, keep for readers that return',
  parameters: [theSelector, limit],
  answers: answers('The window, and its newest events without their data.', stateFields),
}

export const connections: OperationDoc = {
  summary: 'List the connections of this hub, streams and polls, oldest first',
  parameters: [
    queryParameter('subject', 'Lists only connections of this subject.'),
    queryParameter('channel', 'Lists only connections that asked for exactly this channel or pattern.'),
    queryParameter('after', 'The `next` of the page before.'),
    limit,
  ],
  answers: answers('A page of connections.', {
    connections: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          connection: text,
          channels: { type: 'array', items: text },
          ip: id,
          userAgent: id,
          subject: id,
          mode: { enum: ['replaying', 'live'] },
          full: { type: 'boolean' },
          pending: count,
          since: count,
        },
      },
    },
    total: { ...count, description: 'The number of connections on all pages.' },
    next: id,
  }),
}

export const sseState: OperationDoc = {
  summary: 'The state of a channel: the fields of `/admin/window`, and the same facts under other names',
  parameters: [theSelector, limit],
  answers: answers('The state of the channel.', {
    ...stateFields,
    length: count,
    firstEntry: id,
    lastEntry: id,
    oldestIdInWindow: id,
    activeConnections: count,
  }),
}

/** The number of hubs that share the log, and how many of them have carried the order out. */
const reach = { nodes: count, confirmed: count }

export const disconnect: OperationDoc = {
  summary: 'Close connections, reason `admin`. Their readers return, unless their rights are gone',
  answers: answers('How many connections this hub closed, and how many hubs confirmed the order.', {
    disconnected: count,
    ...reach,
  }),
}

export const invalidate: OperationDoc = {
  summary: 'Invalidate the events of a channel. Its readers are told `sync-required`, reason `forced`',
  answers: answers('The channel is invalidated.', { invalidated: text }),
}

export const revoke: OperationDoc = {
  summary: 'Close every stream of a subject, and reject all tokens issued to it until now, and its API key',
  description:
    'Closes the streams with reason `token-expired`. Tokens that are issued later are accepted. With `jti`, only that token is rejected.',
  answers: answers('The rights are revoked on this hub. `confirmed` says how many hubs of the log have revoked them.', {
    revoked: text,
    ...reach,
  }),
}

export const drain: OperationDoc = {
  summary: 'Close all streams and reject new readers. For a hub that is about to be stopped',
  answers: answers(
    'The hub has begun to close the streams.',
    { draining: { const: true }, withinMs: { type: 'number' }, announceMs: { type: 'number' } },
    202,
  ),
}

const state = { on: { type: 'boolean' }, retryAfterMs: { type: 'number' } }

export const maintenanceState: OperationDoc = {
  summary: 'Whether the hub rejects readers because of maintenance',
  answers: answers('Whether maintenance is on, and how long readers are told to wait.', state),
}

export const maintenance: OperationDoc = {
  summary: 'Close all streams, reason `maintenance`, and reject new readers until maintenance is switched off',
  answers: answers('Whether maintenance is now on, and how long readers are told to wait.', state),
}

const idFormat = {
  type: 'object',
  properties: {
    format: text,
    version: {
      type: ['integer', 'null'],
      description: 'The version in front of every id: `v<version>_`. Null: ids have no prefix.',
    },
    since: {
      type: ['object', 'null'],
      properties: { ms: count, seq: count },
      description: 'The first position with this format. Null for the first format of a log.',
    },
  },
}

export const idFormats: OperationDoc = {
  summary: 'List the id formats that this log has used, oldest first. Ids of all formats resume',
  answers: answers('The formats. New events get ids of the last one.', { formats: { type: 'array', items: idFormat } }),
}

export const switchIds: OperationDoc = {
  summary: 'Change the id format for new events, on all hubs of the log. Old ids stay valid',
  answers: answers('Whether the format changes, and the format before and after.', {
    isNew: { type: 'boolean' },
    dryRun: { type: 'boolean' },
    before: idFormat,
    after: idFormat,
  }),
}

import { json, type OperationDoc, type ParameterDoc, rejectionDoc, type Schema } from '../http/openapi.ts'

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
    description: 'What it may hold: the window of its own name, of the narrowest pattern over it, or that of the log.',
  },
}

function query(name: string, description: string, schema: Schema = text): ParameterDoc {
  return { name, in: 'query', description, schema }
}

const limit = query('limit', 'How many, 100 if left out.', { type: 'integer', minimum: 1, maximum: 1000 })
const theChannel: ParameterDoc = {
  ...query('channel', 'The channel that is meant.'),
  required: true,
}

function answers(description: string, properties: Schema, status = 200): OperationDoc['answers'] {
  return { [status]: json(description, { type: 'object', properties }), 400: rejectionDoc }
}

export const channels: OperationDoc = {
  summary: 'The channels that the log knows, by name',
  parameters: [query('prefix', 'How the names begin.'), query('after', 'The `next` of the page before.'), limit],
  answers: answers('A page, with what each channel holds.', {
    channels: { type: 'array', items: { type: 'object', properties: { channel: text, ...windowFields } } },
    next: id,
  }),
}

const theSelector: ParameterDoc = {
  ...theChannel,
  description: 'The channel that is meant, or a pattern of channels.',
}

const stateFields = {
  channel: text,
  ...windowFields,
  readers: { ...count, description: 'Readers on this hub, by the name of the channel or by a pattern.' },
  entries: {
    type: 'array',
    description: 'The newest events that it holds, oldest first; as many as `limit` says.',
    items: { type: 'object', properties: { id: text, channel: text, type: text, at: time, bytes: count } },
  },
}

export const window: OperationDoc = {
  summary: 'What a channel, or all channels of a pattern, hold for those who come back',
  parameters: [theSelector, limit],
  answers: answers('Its window, and its newest events without their data.', stateFields),
}

export const connections: OperationDoc = {
  summary: 'Who is connected, by stream or poll, oldest first',
  parameters: [
    query('subject', 'Only those of this subject.'),
    query('channel', 'Only those that asked for this channel, or for this pattern.'),
    query('after', 'The `next` of the page before.'),
    limit,
  ],
  answers: answers('A page.', {
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
    total: { ...count, description: 'Of all pages.' },
    next: id,
  }),
}

export const sseState: OperationDoc = {
  summary: 'The same as `/admin/window`, also in the words of a stream of entries',
  parameters: [theSelector, limit],
  answers: answers('Its state.', {
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
  summary: 'End connections with `close`, reason `admin`; their readers come back unless their rights are gone',
  answers: answers('How many it were here, and how many hubs of the log have confirmed.', {
    disconnected: count,
    ...reach,
  }),
}

export const invalidate: OperationDoc = {
  summary: 'Invalidate the events that a channel holds; its readers are told `sync-required`, reason `forced`',
  answers: answers('Done.', { invalidated: text }),
}

export const revoke: OperationDoc = {
  summary: 'End every stream of a subject with `token-expired`, and believe none of the tokens it has now',
  description: 'Streams that it opens with rights given later are served.',
  answers: answers('Done here, and by how many hubs of the log.', { revoked: text, ...reach }),
}

export const drain: OperationDoc = {
  summary: 'Let all readers go and take no new ones; for a hub that is about to be stopped',
  answers: answers(
    'It has begun.',
    { draining: { const: true }, withinMs: { type: 'number' }, announceMs: { type: 'number' } },
    202,
  ),
}

const state = { on: { type: 'boolean' }, retryAfterMs: { type: 'number' } }

export const maintenanceState: OperationDoc = {
  summary: 'Whether readers are rejected because of maintenance',
  answers: answers('Whether, and for how long they are asked to wait.', state),
}

export const maintenance: OperationDoc = {
  summary: 'Close all streams with reason `maintenance`, and reject new readers until it is switched off',
  answers: answers('As it is now.', state),
}

const idFormat = {
  type: 'object',
  properties: {
    format: text,
    version: { type: ['integer', 'null'], description: 'Stands in front of every id as `v<version>_`.' },
    since: {
      type: ['object', 'null'],
      properties: { ms: count, seq: count },
      description: 'The position from which it holds; null for the first of a log.',
    },
  },
}

export const idFormats: OperationDoc = {
  summary: 'How this log has written its ids, oldest first; all of them resume',
  answers: answers('The last is that of new events.', { formats: { type: 'array', items: idFormat } }),
}

export const switchIds: OperationDoc = {
  summary: 'Write the ids of new events otherwise, on all hubs of the log; ids from before stay good',
  answers: answers('Whether that is a change, and what it was and is.', {
    isNew: { type: 'boolean' },
    dryRun: { type: 'boolean' },
    before: idFormat,
    after: idFormat,
  }),
}

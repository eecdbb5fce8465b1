import { json, type OperationDoc, type ParameterDoc, refusalDoc, type Schema } from './openapi.ts'

/** What `openapi.json` says of the routes in admin-routes.ts. */

const text = { type: 'string' }
const count = { type: 'integer', minimum: 0 }
const id = { type: ['string', 'null'] }
const time = { type: ['integer', 'null'], description: 'ms since 1970' }
const ms = (description: string): Schema => ({ type: 'number', minimum: 0, maximum: 86_400_000, description })

const windowFields = {
  events: count,
  bytes: count,
  oldest: id,
  newest: id,
  oldestAt: time,
  newestAt: time,
  ended: { type: 'boolean' },
  limits: {
    ...{ type: 'object', properties: { maxEvents: count, maxAgeMs: count, maxBytes: count } },
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
  return { [status]: json(description, { type: 'object', properties }), 400: refusalDoc }
}

function body(properties: Schema, ...required: string[]): Schema {
  return { type: 'object', properties, required }
}

export const channels: OperationDoc = {
  summary: 'The channels that the log knows, by name',
  parameters: [query('prefix', 'How the names begin.'), query('after', 'The `next` of the page before.'), limit],
  answers: answers('A page, with what each channel holds.', {
    channels: { type: 'array', items: { type: 'object', properties: { channel: text, ...windowFields } } },
    next: id,
  }),
}

export const window: OperationDoc = {
  summary: 'What a channel, or all channels of a pattern, hold for those who come back',
  parameters: [{ ...theChannel, description: 'The channel that is meant, or a pattern of channels.' }],
  answers: answers('Its window.', { channel: text, ...windowFields }),
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
          ...{ connection: text, channels: { type: 'array', items: text } },
          ...{ ip: id, userAgent: id, subject: id, mode: { enum: ['replaying', 'live'] } },
          ...{ full: { type: 'boolean' }, pending: count, since: count },
        },
      },
    },
    total: { ...count, description: 'Of all pages.' },
    next: id,
  }),
}

export const sseState: OperationDoc = {
  summary: 'The state of a channel in the words of a stream of entries',
  parameters: [theChannel],
  answers: answers('Its state.', {
    ...{ length: count, bytes: count, firstEntry: id, lastEntry: id, oldestIdInWindow: id },
    activeConnections: { ...count, description: 'Readers of the channel on this hub, by its name or a pattern.' },
  }),
}

/** Hubs that share the log, and how many of them have carried it out. */
const reach = { nodes: count, confirmed: count }

export const disconnect: OperationDoc = {
  summary: 'End connections with `close`, reason `admin`; their readers come back unless their rights are gone',
  body: body({ connection: text, subject: text }),
  answers: answers('How many it were here, and how many hubs of the log have confirmed.', {
    disconnected: count,
    ...reach,
  }),
}

export const invalidate: OperationDoc = {
  summary: 'Declare what a channel holds void; its readers are told `sync-required`, reason `forced`',
  body: body({ channel: text }, 'channel'),
  answers: answers('Done.', { invalidated: text }),
}

export const revoke: OperationDoc = {
  summary: 'End every stream of a subject with `token-expired`, and believe none of the tokens it has now',
  description: 'Streams that it opens with rights given later are served.',
  body: body(
    {
      subject: text,
      jti: {
        ...text,
        description: 'Only the token with this `jti`. Its other streams end as well, and may come back.',
      },
      until: { type: 'integer', description: 'When it may be forgotten, ms since 1970: the `exp` of what is revoked.' },
    },
    'subject',
  ),
  answers: answers('Done here, and by how many hubs of the log.', { revoked: text, ...reach }),
}

export const drain: OperationDoc = {
  summary: 'Let all readers go and take no new ones; for a hub that is about to be stopped',
  body: body({ withinMs: ms('Over how long they are spread; 5000 if left out.') }),
  answers: answers('It has begun.', { draining: { const: true }, withinMs: { type: 'number' } }, 202),
}

const state = { on: { type: 'boolean' }, retryAfterMs: { type: 'number' } }

export const maintenanceState: OperationDoc = {
  summary: 'Whether readers are being turned away for maintenance',
  answers: answers('Whether, and for how long they are asked to wait.', state),
}

export const maintenance: OperationDoc = {
  summary: 'Send all readers away with `close`, reason `maintenance`, and turn new ones away, until it is switched off',
  body: body(
    {
      on: { type: 'boolean' },
      retryAfterMs: ms('When readers are to try again; 60000 if left out.'),
      withinMs: ms('Over how long the ends are spread; 5000 if left out.'),
    },
    'on',
  ),
  answers: answers('As it is now.', state),
}

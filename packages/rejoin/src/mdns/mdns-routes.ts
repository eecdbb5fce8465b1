import type { RequestListener } from 'node:http'
import { json, type OperationDoc, type ParameterDoc, rejectionDoc, type Schema } from '../http/openapi.ts'
import type { Route } from '../http/routes.ts'

/** The routes of the mDNS source. The source's own handler answers them. */
export function mdnsRoutes(handler: RequestListener): Route[] {
  return Object.entries(docs).map(([name, doc]) => ({
    method: 'GET',
    path: `/v1/mdns/${name}`,
    open: 'to-all',
    doc,
    handle: () => ({ handOver: handler }),
  }))
}

const text = { type: 'string' }

function parameter(name: string, description: string, schema: Schema = text): ParameterDoc {
  return { name, in: 'query', description, schema }
}

const type = parameter('type', 'The service type: `_http._tcp`, also written `http` or `_http._tcp.local.`.')
const rejected = { 400: rejectionDoc, 401: rejectionDoc, 403: rejectionDoc, 503: rejectionDoc }

const service = {
  type: 'object',
  required: ['id', 'type', 'name'],
  properties: {
    id: text,
    type: text,
    name: text,
    host: text,
    port: { type: 'integer' },
    ip: text,
    addresses: { type: 'array', items: text },
    txt: { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  },
}

const events: OperationDoc = {
  summary: 'Read a stream of events about the services of a type: found, resolved, removed',
  parameters: [
    { ...type, required: true },
    parameter('idle_for', 'The stream ends after this many seconds without an event. 0 means never. Default: 5.', {
      type: 'integer',
    }),
    parameter('lastEventId', 'The cursor. For clients that cannot send `Last-Event-ID`.'),
    {
      name: 'Last-Event-ID',
      in: 'header',
      schema: text,
      description: 'The cursor: the last id that the reader received. All events after it follow.',
    },
  ],
  answers: {
    200: { description: 'The stream.', content: { 'text/event-stream': { schema: text } } },
    ...rejected,
  },
}

const browse: OperationDoc = {
  summary: 'List the services of a type that are on the network now. Without a type, list all service types',
  parameters: [type],
  answers: {
    200: json('The services, and the cursor for a stream of the events that follow.', {
      type: 'object',
      required: ['type', 'cursor', 'services', 'source'],
      properties: { type: text, cursor: text, services: { type: 'array', items: service }, source: { type: 'object' } },
    }),
    ...rejected,
  },
}

const resolve: OperationDoc = {
  summary: 'Look up one service by its full name',
  parameters: [{ ...parameter('name', 'The name, such as `My NAS._http._tcp.local.`.'), required: true }],
  answers: {
    200: json('The service.', { type: 'object', properties: { service } }),
    ...rejected,
    504: rejectionDoc,
  },
}

const status: OperationDoc = {
  summary: 'Whether the source hears the network, and which service types it follows',
  answers: {
    200: json('The state of the source. `healthy` is false when it has heard nothing for 90 s.', {
      type: 'object',
      properties: {
        healthy: { type: 'boolean' },
        silentMs: { type: 'number' },
        failure: { type: ['string', 'null'] },
        browses: { type: 'array', items: { type: 'object' } },
      },
    }),
    ...rejected,
  },
}

const docs: Readonly<Record<string, OperationDoc>> = {
  events,
  subscribe: events,
  browse,
  discover: browse,
  resolve,
  status,
}

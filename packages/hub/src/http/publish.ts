import { RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import { JsonText, readJson } from '../hub/json-text.ts'
import type { Message } from '../hub/publish/message.ts'
import type { PublishedEvent, PublishOptions } from '../hub/publish/publishing.ts'
import { jsonMistake } from '../json-mistake.ts'
import { type Answer, jsonTextAnswer } from './answer.ts'
import { assertShallow, dataTexts } from './data-texts.ts'
import type { Target } from './target.ts'

/** The largest body of a publish, in bytes (§5.1). */
export const maxBodyBytes = 256 * 1024

export interface PublishedBody {
  readonly bytes: Uint8Array
  /** Whether the request says that the body is plain text: data that looks like JSON is then text all the same. */
  readonly isText: boolean
}

/**
 * Publishes the events in a request's body (§5.1). `channel` is the channel in the path; '' for an envelope, a batch or an event
 * of the default channel.
 *
 * @param assertAllowed - throws for a channel that the publisher has no right to
 */
export async function publishBody(
  hub: Hub,
  channel: string,
  { query }: Target,
  { bytes, isText }: PublishedBody,
  assertAllowed: (channel: string) => void,
  options: PublishOptions,
): Promise<Answer> {
  const text = decodeUtf8(bytes)
  if (channel !== '') {
    assertAllowed(channel)
    const value = isText ? undefined : readJson(text)?.value
    return answerOne(hub, await hub.publish(channel, readBody(text, value, query), options))
  }
  const { defaultChannel } = hub.port
  const value = parseJson(text, defaultChannel !== undefined)
  if (defaultChannel !== undefined && !namesChannels(value)) {
    assertAllowed(defaultChannel)
    const data = isText ? undefined : value
    return answerOne(hub, await hub.publish(defaultChannel, readBody(text, data, query), options))
  }
  const data = dataTexts(text)
  if (!Array.isArray(value)) {
    const envelope = readEnvelope(value, data[0])
    assertAllowed(envelope.channel)
    return answerOne(hub, await hub.publish(envelope.channel, envelope, options))
  }
  if (value.length === 0) {
    throw new RejoinError('The batch is empty. Send at least one event.', { code: 'invalid-event' })
  }
  const envelopes = value.map((event, index) => readEnvelope(event, data[index], index))
  for (const envelope of envelopes) assertAllowed(envelope.channel)
  // Reading and publishing a large batch both take long, so each gets a turn of its own.
  if (envelopes.length > largeBatch) await new Promise((resolve) => setImmediate(resolve))
  const events = await hub.publishBatch(envelopes, options)
  // No character of an id (§2.6) has to be escaped in JSON.
  const ids = events.map(({ id }) => id).join('"},{"id":"')
  // The answer for a batch states the durability of its least durable event.
  const [least = events[0]] = events.filter((event) => event.live)
  const durability = durabilityOf(hub, least)
  return jsonTextAnswer(
    least?.local ? 202 : 201,
    `{"events":[{"id":"${ids}"}],"durability":"${durability}"${mark(events[0])}}`,
  )
}

function answerOne(hub: Hub, event: PublishedEvent): Answer {
  // No character of an id (§2.6) has to be escaped in JSON.
  return jsonTextAnswer(
    event.local ? 202 : 201,
    `{"id":"${event.id}","durability":"${durabilityOf(hub, event)}"${mark(event)}}`,
  )
}

/** Says of a repeated publish that it is one (§5.5). */
function mark(event: PublishedEvent | undefined): string {
  return event?.repeated ? ',"repeated":true' : ''
}

function durabilityOf({ log }: Hub, event: PublishedEvent | undefined): string {
  return event?.live || event?.local ? 'none' : log.durability
}

const largeBatch = 256

/**
 * An event whose data is the body. Its other fields are in the query.
 *
 * @param value - the body as JSON; undefined for a body that is published as text
 */
function readBody(text: string, value: unknown, query: URLSearchParams): Message {
  if (typeof value === 'object') assertShallow(text)
  const isText = value === undefined
  // One literal: spreads of optional fields take longer than parsing the query.
  return {
    text: isText ? text : undefined,
    data: isText ? undefined : new JsonText(text),
    type: query.get('type') ?? undefined,
    key: query.get('key') ?? undefined,
    forget: isSet(query, 'forget'),
    live: isSet(query, 'live'),
  } as Message
}

/** `?live` and `?live=true` set it, `?live=false` does not. */
function isSet(query: URLSearchParams, name: string): boolean {
  return query.has(name) && query.get(name) !== 'false'
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(body: Uint8Array): string {
  try {
    return strictUtf8.decode(body)
  } catch (cause) {
    throw new RejoinError('The body is not UTF-8. Encode it as UTF-8, or binary data as base64.', {
      code: 'invalid-data',
      cause,
    })
  }
}

/** Whether a body is an envelope or a batch. On a hub with a default channel, any other body is the data of an event. */
function namesChannels(value: unknown): boolean {
  const events = Array.isArray(value) && value.length > 0 ? value : [value]
  return events.every((event) => typeof event === 'object' && event !== null && 'channel' in event)
}

/** @param mayBeText - whether a body that is no JSON is the text of an event: it then gives undefined instead of an error */
function parseJson(text: string, mayBeText: boolean): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (mayBeText) return undefined
    throw new RejoinError(
      `The body is not JSON: ${jsonMistake(cause)}. Send {"channel":…,"data":…} or an array of those, or plain text to /publish/<channel>.`,
      { code: 'invalid-event', cause },
    )
  }
}

type Envelope = Message & { readonly channel: string }

/**
 * Checks that a parsed value is an event, and returns that same object: a batch may hold a thousand, and none is copied. The
 * data travels on as the text that was sent.
 */
function readEnvelope(value: unknown, data: string | undefined, index?: number): Envelope {
  const problem = problemOf(value)
  if (problem === undefined)
    return data === undefined ? (value as Envelope) : Object.assign(value as Envelope, { data: new JsonText(data) })
  const where = index === undefined ? '' : `Event ${index} of the batch: `
  throw new RejoinError(`${where}${problem}`, { code: 'invalid-event' })
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'an event is an object such as {"channel":"orders/42","data":{"status":"shipped"}}.'
  }
  for (const key in value) {
    if (key === 'channel' || key === 'type' || key === 'data' || key === 'text') continue
    if (key === 'key' || key === 'forget' || key === 'live') continue
    // `for in` also lists keys that a program has added to `Object.prototype`.
    if (Object.hasOwn(value, key)) {
      return `unknown key ${JSON.stringify(key)}. Use channel, type, data or text, and key, forget or live.`
    }
  }
  const { channel, type, data, text, key, forget, live } = value as Record<string, unknown>
  if (typeof channel !== 'string') return '"channel" has to be a string.'
  if (type !== undefined && typeof type !== 'string') return '"type" has to be a string.'
  if ((data === undefined) === (text === undefined)) return 'give either "data", a JSON value, or "text", a string.'
  if (text !== undefined && typeof text !== 'string') return '"text" has to be a string; use "data" for JSON.'
  if (key !== undefined && typeof key !== 'string') return '"key" has to be a string.'
  if (forget !== undefined && typeof forget !== 'boolean') return '"forget" has to be true or false.'
  if (live !== undefined && typeof live !== 'boolean') return '"live" has to be true or false.'
  return undefined
}

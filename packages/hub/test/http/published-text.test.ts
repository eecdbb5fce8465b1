import { describe, expect, test } from 'vitest'
import { serveHub } from '../support/http-server.ts'

describe('an event that was published as text (§4.16)', () => {
  test('is marked as text before its data, live and replayed; JSON has no such line', async () => {
    const { hub, open } = await serveHub()
    const start = await hub.publish('a', { data: 0 })
    await hub.publish('a', { type: 'note', text: '42' })
    await hub.publish('a', { data: '42' })
    const reader = await open('/events/a', { 'Last-Event-ID': start.id })
    await reader.waitFor((events) => events.length === 3)
    await hub.publish('a', { text: 'two\nlines' })
    await reader.waitFor((events) => events.length === 4)
    const frames = reader.text
      .replace(/^: .*\n\n/gm, '')
      .split('\n\n')
      .slice(1, 4)
    expect(frames.map((frame) => frame.replace(/^id: .*\n/, ''))).toEqual([
      'event: note\ncontent: text\ndata: 42',
      'data: "42"',
      'content: text\ndata: two\ndata: lines',
    ])
  })

  test('is marked as text in polls, in hub.stream() and in retained values', async () => {
    const { hub, url } = await serveHub({ retain: ['a'] })
    await hub.publish('a', { data: 0, key: 'json' })
    await hub.publish('a', { text: '1', key: 'text' })
    const shown = [['0'], ['1', 'text']]
    const poll = await fetch(url('/poll/a?cursor=earliest'))
    const { events } = (await poll.json()) as { events: Shown[] }
    expect(events.slice(1).map(({ data, content }) => [data, content].filter(Boolean))).toEqual(shown)

    const streamed: unknown[] = []
    for await (const { type, data, content } of hub.stream('a', { from: 'earliest' })) {
      if (type === 'message' && streamed.push([data, content].filter(Boolean)) === 2) break
    }
    expect(streamed).toEqual(shown)

    const lost = await fetch(url('/poll/a?cursor=nonsense'))
    const { events: told } = (await lost.json()) as { events: Shown[] }
    const { retained } = JSON.parse(told[1]?.data ?? '') as { retained: Shown[] }
    expect(retained.map(({ data, content }) => [data, content].filter(Boolean))).toEqual(shown)
  })

  test('is `text` in an envelope, also where it looks like JSON (§4.15)', async () => {
    const { hub, open } = await serveHub()
    const start = await hub.publish('a', { data: 0 })
    await hub.publish('a', { text: '42' })
    const reader = await open('/events/a?show=envelope', { 'Last-Event-ID': start.id })
    await reader.waitFor((events) => events.length === 2)
    expect(JSON.parse(reader.events[1]?.data ?? '')).toMatchObject({ channel: 'a', text: '42' })
    expect(reader.text).not.toContain('content:')
  })

  test.each([
    ['one', 'text'],
    ['{"a":1', 'text'],
    ['', 'text'],
    ['{"a": 1}', undefined],
    [' 42', undefined],
  ])('a body %j to a channel is %s, by whether it is JSON (§5.1)', async (body, content) => {
    // Without a content type, and with the one that `curl -d` sends.
    for (const type of [undefined, 'application/x-www-form-urlencoded', 'application/json']) {
      expect(await published(body, type)).toEqual([content, content])
    }
  })

  test.each(['{"a": 1}', '42', '"quoted"', 'null', 'one'])(
    'a body %j with the type text/plain is text (§5.1)',
    async (body) => {
      for (const type of ['text/plain', 'Text/Plain;charset=UTF-8', ' text/plain ; format=flowed']) {
        expect(await published(body, type)).toEqual(['text', 'text'])
      }
    },
  )

  test('an envelope or a batch says of each event whether it is text, also as text/plain', async () => {
    const { url } = await serveHub({ defaultChannel: 'other' })
    const headers = { 'Content-Type': 'text/plain' }
    for (const body of ['{"channel":"a","data":1}', '[{"channel":"a","text":"2"},{"channel":"a","data":3}]']) {
      expect((await fetch(url('/publish'), { method: 'POST', body, headers })).status).toBe(201)
    }
    const poll = await fetch(url('/poll/a?cursor=earliest'))
    const { events } = (await poll.json()) as { events: Shown[] }
    expect(events.slice(1).map(({ data, content }) => [data, content])).toEqual([['1'], ['2', 'text'], ['3']].map(pair))
  })
})

/** How a body arrives that is published to a channel, and to the default channel. */
async function published(body: string, type: string | undefined): Promise<(string | undefined)[]> {
  const contents: (string | undefined)[] = []
  for (const defaultChannel of [undefined, 'a']) {
    const { hub, url } = await serveHub(defaultChannel === undefined ? {} : { defaultChannel })
    // Bytes: for a string, `fetch` sends text/plain by itself.
    const init = { method: 'POST', body: new TextEncoder().encode(body), headers: type ? { 'Content-Type': type } : {} }
    const answer = await fetch(url(defaultChannel ? '/publish' : '/publish/a'), init)
    expect(answer.status).toBe(201)
    const poll = await fetch(url('/poll/a?cursor=earliest'))
    const { events } = (await poll.json()) as { events: Shown[] }
    expect(events.at(-1)).toMatchObject({ data: body })
    contents.push(events.at(-1)?.content)
    await hub.close()
  }
  return contents
}

function pair([data, content]: string[]): [string | undefined, string | undefined] {
  return [data, content]
}

interface Shown {
  readonly data: string
  readonly content?: string
}

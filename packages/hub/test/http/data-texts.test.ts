import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dataTexts } from '../../src/http/data-texts.ts'
import { serveHub, type TestServer } from '../support/http-server.ts'

describe('the data of an envelope (§5.1)', () => {
  test.each([
    ['an integer that JavaScript cannot hold', '9007199254740993'],
    ['a number beyond the range of JavaScript', '1e400'],
    ['a fraction with more digits than JavaScript keeps', '0.1234567890123456789'],
    ['minus zero', '-0'],
    ['a key twice', '{"a":1,"a":2}'],
    ['a large number inside', '{"id":[9007199254740993,{"x":"}],\\"\\\\"}]}'],
    ['escapes and spaces', '{ "a" :\t"\\u0041\\ud800" }'],
  ])('reaches a reader as it was sent: %s', async (_what, data) => {
    const server = await serveHub()
    const stream = await server.open('/events/a')
    await post(server, `{"channel":"a","data":${data}}`)
    await post(server, `[ {"data" : ${data} , "channel":"a","type":"t"},{"channel":"a","text":"x"} ]`)
    await stream.waitFor((events) => events.length === 4)
    expect(stream.events.slice(1).map((event) => event.data)).toEqual([data, data, 'x'])
  })

  test('is found wherever it stands, whatever else the envelope holds', () => {
    const space = fc.constantFrom('', ' ', '\n', '\t\r\n ')
    const envelope = fc.record(
      { channel: fc.string(), data: fc.jsonValue(), type: fc.string({ unit: 'binary' }), 'd"a\\ta': fc.jsonValue() },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(envelope, space)), space, (events, around) => {
        const texts = events.map(([event, inside]) => JSON.stringify(event, undefined, inside))
        const body = `${around}[${texts.join(`${around},${around}`)}${around}]${around}`
        expect(dataTexts(body).map((text) => text && JSON.parse(text))).toEqual(
          events.map(([event]) => (event.data === undefined ? undefined : JSON.parse(JSON.stringify(event.data)))),
        )
      }),
      { numRuns: 500 },
    )
  })

  test('counts when its key is written with escapes, and the last of two counts', () => {
    expect(dataTexts('{"d\\u0061ta": 1 , "data":[2]}')).toEqual(['[2]'])
    expect(dataTexts('{"data":1,"d\\u0061ta":"\\\\"}')).toEqual(['"\\\\"'])
    expect(dataTexts('[1,"x",[{"data":1}],{"data":{}}]')).toEqual([undefined, undefined, undefined, '{}'])
    expect(dataTexts(' 7 ')).toEqual([undefined])
    expect(dataTexts('[]')).toEqual([])
  })
})

async function post({ url }: TestServer, body: string): Promise<void> {
  const response = await fetch(url('/publish'), { method: 'POST', body })
  expect(response.status).toBe(201)
}

/** @typedef {import('./event-source-rules.d.ts').Place} Place */

/**
 * The rules of the standard's `EventSource`, one by one: what a server answers, and what a reader is told. They are played by
 * our class in Node and in Chromium, and by Chromium's own class where that can be asked for the same.
 */

/** @param {string} text */
const encode = (text) => new TextEncoder().encode(text)
const stays = { stays: true, text: 'data: end\n\n' }
/** @param {string} text */
const stream = (text) => [{ stays: true, text: `${text}data: end\n\n` }]
/** @param {string} text */
const broken = (text) => [{ text: `retry: 5\n${text}` }, stays]

/** @type {import('./event-source-rules.d.ts').Rule[]} */
export const rules = [
  // Lines
  {
    name: 'LF, CR and CRLF end a line',
    answers: stream('data: a\n\ndata: b\r\rdata: c\r\n\r\n'),
    told: ['a', 'b', 'c'],
  },
  { name: 'one leading BOM is dropped', answers: stream('\uFEFFdata: a\n\n'), told: ['a'] },
  { name: 'a second BOM is text', answers: stream('\uFEFF\uFEFFdata: a\n\ndata: b\n\n'), told: ['b'] },
  { name: 'a comment is no event', answers: stream(':\n\n: data: a\n\n'), told: [] },
  {
    name: 'one space after the colon is dropped, and no other',
    answers: stream('data:a\n\ndata:  b\n\ndata:\tc\n\n'),
    told: ['a', ' b', '\tc'],
  },
  {
    name: 'a line without a colon is a field without a value',
    answers: stream('data\n\ndata\ndata\n\n'),
    told: ['', '\n'],
  },
  {
    name: 'names of fields are compared letter by letter',
    answers: stream('DATA: a\n\n data: b\n\ndata : c\n\n'),
    told: [],
  },
  { name: 'a field that nobody knows is ignored', answers: stream('channel: x\ndata: a\n\n'), told: ['a'] },
  {
    name: 'bytes that are no UTF-8 are replaced',
    answers: [{ stays: true, text: new Uint8Array([...encode('data: ö'), 0xff, ...encode('x\n\ndata: end\n\n')]) }],
    told: ['ö\uFFFDx'],
  },
  // Events
  { name: 'lines of data are joined by LF', answers: stream('data: a\ndata\ndata: b\n\n'), told: ['a\n\nb'] },
  {
    name: 'the last type of a block counts',
    answers: stream('event: nobody\nevent: step\ndata: a\n\n'),
    told: ['step a'],
  },
  { name: 'an empty type is a message', answers: stream('event: step\nevent:\ndata: a\n\n'), told: ['a'] },
  { name: 'a type does not outlive its block', answers: stream('event: step\n\ndata: a\n\n'), told: ['a'] },
  { name: 'a block without data is no event', answers: stream('event: step\n\nid: 1\n\n'), told: [] },
  {
    name: 'a block without its blank line is dropped',
    answers: broken('data: a\n\ndata: b\n'),
    told: ['a', 'connecting', 'open'],
  },
  // Ids
  {
    name: 'an id is sent back',
    answers: broken('id: 7\ndata: a\n\n'),
    told: ['a', 'connecting', 'open'],
    cursors: [null, '7'],
  },
  {
    name: 'an id without data counts',
    answers: broken('id: 7\n\n'),
    told: ['connecting', 'open'],
    cursors: [null, '7'],
  },
  {
    name: 'the id of a block without its blank line does not count',
    answers: broken('id: 7\ndata: a\n\nid: 8\ndata: b\n'),
    told: ['a', 'connecting', 'open'],
    cursors: [null, '7'],
  },
  {
    name: 'an id with a NUL is ignored, and an earlier one of its block is not',
    answers: broken('id: 7\nid: 8\0\ndata: a\n\n'),
    told: ['a', 'connecting', 'open'],
    cursors: [null, '7'],
  },
  {
    name: 'an empty id takes the cursor and its header away',
    answers: [{ text: 'retry: 5\nid: 7\n\n' }, { text: 'id\ndata: a\n\n' }, stays],
    told: ['connecting', 'open', 'a', 'connecting', 'open'],
    cursors: [null, '7', null],
  },
  {
    name: 'a comment on a new connection leaves the cursor alone',
    answers: [{ text: 'retry: 5\nid: 7\n\n' }, { text: ': here\n\n' }, stays],
    told: ['connecting', 'open', 'connecting', 'open'],
    cursors: [null, '7', '7'],
  },
  {
    name: 'an id outlives the connection that brought it',
    answers: [{ text: 'retry: 5\nid: 7\n\n' }, stays],
    told: ['open', 'connecting', 'open', 'end'],
    play: withIds,
    cursors: [null, '7'],
  },
  {
    name: 'an id is sent as the bytes of its UTF-8',
    answers: broken('id: ö€\ndata: a\n\n'),
    told: ['a', 'connecting', 'open'],
    cursors: [null, 'ö€'],
  },
  // Waits
  {
    name: '`retry` counts as soon as its line ends',
    answers: [{ text: 'retry: 5\n' }, stays],
    told: ['connecting', 'open'],
  },
  {
    name: '`retry` with leading zeros is a number',
    answers: [{ text: 'retry: 0005\n\n' }, stays],
    told: ['connecting', 'open'],
  },
  {
    name: '`retry` that is no number is ignored',
    answers: [
      { text: 'retry: 5\n\n' },
      { text: 'retry: 90000x\nretry: -90000\nretry: 90000.5\nretry: 9e9\n\n' },
      stays,
    ],
    told: ['connecting', 'open', 'connecting', 'open'],
  },
  // Answers
  ...[204, 205, 301, 401, 404, 500, 503].map((status) => ({
    name: `status ${status} ends it`,
    answers: [{ status }],
    told: ['closed'],
  })),
  {
    name: 'another type ends it',
    answers: [{ headers: { 'Content-Type': 'text/plain' }, text: 'data: a\n\n' }],
    told: ['closed'],
  },
  {
    name: 'a type with parameters, in capitals, is a stream',
    answers: [{ ...stays, headers: { 'Content-Type': 'TEXT/Event-Stream; charset=latin1;x' } }],
    told: [],
    differs: 'it takes no charset but UTF-8',
  },
  { name: 'a redirect is followed', answers: [{ status: 307, headers: { Location: '/moved' } }], told: [] },
  {
    name: 'a return goes to the first address again',
    answers: [
      { status: 302, headers: { Location: 'leaving' } },
      { status: 302, headers: { Location: '/moved' } },
    ],
    told: ['connecting', 'open'],
    cursors: [null, '7'],
    differs: 'it returns to where it was sent',
  },
  // The object
  {
    name: 'close() in a handler silences the events behind',
    answers: stream('data: a\n\ndata: b\n\n'),
    told: ['a', 'readyState 2'],
    play: closing,
  },
  {
    name: 'close() after an await in a handler silences the events behind',
    answers: stream('data: a\n\ndata: b\n\n'),
    told: ['a', 'readyState 2'],
    play: closingLater,
  },
  {
    name: 'close() while it waits for its return is final',
    answers: [{ text: 'retry: 5\n\n' }, stays],
    told: ['connecting', 'readyState 2'],
    play: closingInError,
  },
  {
    name: 'a scheme that is not HTTP closes it, with an error',
    answers: [stays],
    told: ['readyState 0', 'closed'],
    play: otherScheme,
  },
  { name: 'an address that is none is a SyntaxError', answers: [stays], told: ['SyntaxError'], play: badAddress },
  {
    name: 'events say their origin, and the id of the last one',
    answers: stream('id: 7\ndata: a\n\ndata: b\n\n'),
    told: ['same 7 a', 'same 7 b', 'same 7 end'],
    play: origins,
  },
  {
    name: 'a handler keeps its turn when another takes its place',
    answers: stream('data: a\n\n'),
    told: ['third a', 'second a'],
    play: handlerTurns,
  },
  {
    name: 'it has the constants, the names and the defaults of the standard',
    answers: [stays],
    told: ['0 1 2', '0 1 2', '[object EventSource]', 'false', 'true', 'null'],
    play: shape,
  },
]

/**
 * Opens it, and writes down what it tells until the text `end`, or until it has closed.
 *
 * @param {Place} place
 * @param {(source: EventSource, told: string[]) => void} [prepare]
 */
export async function open({ EventSource, url }, prepare = () => undefined) {
  const source = new EventSource(url)
  /** @type {string[]} */
  const told = []
  source.onopen = () => void told.push('open')
  source.onerror = () => void told.push(source.readyState === 2 ? 'closed' : 'connecting')
  source.onmessage = ({ data }) => void told.push(data)
  source.addEventListener('step', ({ data }) => told.push(`step ${data}`))
  prepare(source, told)
  await until(() => told.includes('end') || source.readyState === 2)
  source.close()
  return told
}

/** @param {() => boolean} isSo */
async function until(isSo) {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** What is behind would have come by now: the server has sent it in one piece with what did come. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 30))

/** @param {Place} place */
async function withIds(place) {
  /** @type {string[]} */
  const ids = []
  const told = await open(place, (source) =>
    source.addEventListener('message', ({ lastEventId }) => ids.push(lastEventId)),
  )
  if (ids.join() !== '7') throw new Error(`The last event id was ${ids.join()}.`)
  return told
}

/** @param {Place} place */
async function closing(place) {
  return closedBy(place, (source) => source.addEventListener('message', () => source.close()))
}

/** @param {Place} place */
async function closingLater(place) {
  return closedBy(place, (source) =>
    source.addEventListener('message', async () => {
      await Promise.resolve()
      await Promise.resolve()
      source.close()
    }),
  )
}

/** @param {Place} place */
async function closingInError(place) {
  return closedBy(place, (source) => source.addEventListener('error', () => source.close()))
}

/**
 * @param {Place} place
 * @param {(source: EventSource) => void} prepare
 */
async function closedBy(place, prepare) {
  let state = () => 0
  const told = await open(place, (source) => {
    state = () => source.readyState
    prepare(source)
  })
  await settle()
  return [...told.filter((word) => word !== 'open'), `readyState ${state()}`]
}

/** @param {Place} place */
async function otherScheme({ EventSource }) {
  const source = new EventSource('mailto:somebody@hub.invalid')
  const told = [`readyState ${source.readyState}`]
  await new Promise((resolve) => {
    source.onerror = resolve
  })
  return [...told, source.readyState === 2 ? 'closed' : 'connecting']
}

/** @param {Place} place */
async function badAddress({ EventSource }) {
  try {
    new EventSource('http://[').close()
    return ['opened']
  } catch (error) {
    return [error instanceof DOMException ? error.name : String(error)]
  }
}

/** @param {Place} place */
async function origins(place) {
  /** @type {string[]} */
  const seen = []
  await open(place, (source) =>
    source.addEventListener('message', ({ origin, lastEventId, data }) =>
      seen.push(`${origin === new URL(place.url).origin ? 'same' : origin} ${lastEventId} ${data}`),
    ),
  )
  return seen
}

/** @param {Place} place */
async function handlerTurns(place) {
  /** @type {string[]} */
  const heard = []
  await open(place, (source, told) => {
    source.onmessage = null
    source.onmessage = ({ data }) => void heard.push(`first ${data}`)
    source.addEventListener('message', ({ data }) => heard.push(`second ${data}`))
    source.onmessage = ({ data }) => void heard.push(`third ${data}`)
    source.addEventListener('message', ({ data }) => told.push(data))
  })
  return heard.slice(0, 2)
}

/** @param {Place} place */
async function shape({ EventSource, url }) {
  const source = new EventSource(url, { withCredentials: true })
  const other = new EventSource(new URL(url))
  const words = [
    [EventSource.CONNECTING, EventSource.OPEN, EventSource.CLOSED].join(' '),
    [source.CONNECTING, source.OPEN, source.CLOSED].join(' '),
    Object.prototype.toString.call(source),
    String(other.withCredentials),
    String(source.withCredentials),
    String(source.onmessage),
  ]
  source.close()
  other.close()
  return words
}

import { inspect } from 'node:util'
import { plainText } from '@rejoin/hub/internal'
import { proxyTitles } from '../../doctor/proxy-name.ts'
import type { Check, CheckName, Report, Server } from '../../doctor/report.ts'

/** A report for a person: the server, a line for each check, then each fault and hint with what to change. */
export function reportLines({ address, server, checks, ms }: Report, style: Style): string[] {
  const faults = checks.filter(({ state }) => state === 'fault')
  const hints = checks.filter(({ state }) => state === 'hint')
  return [
    '',
    `${painted('bold', plainText(address), style)}  ${painted('dim', whoAnswers(server), style)}`,
    '',
    ...checks.map((check) => checkLine(check, style)),
    ...[...faults, ...hints].flatMap((check) => ['', ...remedyLines(check, style)]),
    '',
    verdict({ faults: faults.length, hints: hints.length, server, ms }, style),
  ]
}

export interface Style {
  readonly colour: boolean
}

/** The title of a check in the report. */
export function titleOf(name: CheckName): string {
  return titles[name]
}

const titles: Readonly<Record<CheckName, string>> = {
  redirect: 'redirects',
  stream: 'streaming',
  'header-cursor': 'cursor in header',
  'query-cursor': 'cursor in query',
  ids: 'ids',
  heartbeats: 'heartbeats',
  compression: 'compression',
  caching: 'caching',
  disconnect: 'disconnects',
  silence: 'silence',
  idle: 'idle stream',
  cors: 'CORS',
  'http-version': 'HTTP version',
}

const width = Math.max(...Object.values(titles).map(({ length }) => length))

const marks: Readonly<Record<Check['state'], [mark: string, colour: Colour]>> = {
  good: ['✓', 'green'],
  fault: ['✗', 'red'],
  hint: ['!', 'yellow'],
  unknown: ['·', 'dim'],
}

function whoAnswers({ kind, version, proxy, proxyText }: Server): string {
  const who = { program: `rejoin ${version}`, hub: 'a hub of Rejoin, without probes', other: 'not a Rejoin hub' }[kind]
  const front = proxyText ?? (proxy && proxyTitles[proxy])
  return plainText(front ? `${who}, behind ${front}` : who)
}

function checkLine({ name, state, summary }: Check, style: Style): string {
  const [mark, colour] = marks[state]
  const text = plainText(summary)
  const said = state === 'unknown' ? painted('dim', text, style) : text
  return `  ${painted(colour, mark, style)} ${titles[name].padEnd(width)}  ${said}`
}

function remedyLines({ name, state, summary, remedy }: Check, style: Style): string[] {
  const [mark, colour] = marks[state]
  const heading = painted(colour, `${mark} ${titles[name]}: ${plainText(summary)}`, style)
  if (!remedy) return [heading]
  return [
    heading,
    `  ${remedy.cost}`,
    `  Likely cause: ${plainText(remedy.culprit)}.`,
    ...remedy.changes.flatMap(({ where, lines }) => [
      `  In ${plainText(where)}:`,
      ...lines.map((line) => `      ${changeLine(line, style)}`),
    ]),
  ]
}

function changeLine(line: string, style: Style): string {
  const isRemoval = line.startsWith(removal)
  const text = plainText(isRemoval ? line.slice(removal.length) : line)
  return isRemoval ? painted('red', `- ${text}`, style) : painted('green', `+ ${text}`, style)
}

const removal = 'remove: '

function verdict(found: { faults: number; hints: number; server: Server; ms: number }, style: Style): string {
  const { faults, hints, server, ms } = found
  const took = painted('dim', ` (${(ms / 1000).toFixed(1)} s)`, style)
  if (faults > 0) return painted('red', `${counted(faults, 'fault')} found.`, style) + took
  const also = hints > 0 ? ` ${counted(hints, 'hint')} above.` : ''
  const good = server.kind === 'program' ? 'Streams pass unharmed.' : 'No fault can be seen from outside.'
  return painted('green', good, style) + also + took
}

function counted(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

type Colour = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

function painted(colour: Colour, text: string, style: Style): string {
  const [on, off] = inspect.colors[colour] ?? []
  return style.colour ? `\u001b[${on}m${text}\u001b[${off}m` : text
}

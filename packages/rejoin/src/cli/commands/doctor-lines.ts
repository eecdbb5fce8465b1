import type { Check, CheckName, Report, Server } from '@rejoin/doctor'
import { proxyTitles } from '@rejoin/doctor/proxy-name'
import { plainText } from '@rejoin/hub/internal'
import { counted } from '../../counted.ts'
import { type Style, styled } from '../../logging/style.ts'
import { table } from '../../logging/table.ts'

/** A report for a person: the server, a line for each check, then each fault and hint with what to change. */
export function reportLines({ address, server, checks, ms }: Report, { colour }: ReportStyle): string[] {
  const faults = checks.filter(({ state }) => state === 'fault')
  const hints = checks.filter(({ state }) => state === 'hint')
  return [
    '',
    `${styled('bold', plainText(address), colour)}  ${styled('dim', whoAnswers(server), colour)}`,
    '',
    ...table(checks.map((check) => checkRow(check, colour))).map((line) => `  ${line}`),
    ...[...faults, ...hints].flatMap((check) => ['', ...remedyLines(check, colour)]),
    '',
    verdict({ faults: faults.length, hints: hints.length, server, ms }, colour),
  ]
}

export interface ReportStyle {
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

const marks: Readonly<Record<Check['state'], [mark: string, style: Style]>> = {
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

function checkRow({ name, state, summary }: Check, colour: boolean): string[] {
  const [mark, style] = marks[state]
  const text = plainText(summary)
  return [`${styled(style, mark, colour)} ${titles[name]}`, state === 'unknown' ? styled('dim', text, colour) : text]
}

function remedyLines({ name, state, summary, remedy }: Check, colour: boolean): string[] {
  const [mark, style] = marks[state]
  const heading = styled(style, `${mark} ${titles[name]}: ${plainText(summary)}`, colour)
  if (!remedy) return [heading]
  return [
    heading,
    `  ${remedy.cost}`,
    `  Likely cause: ${plainText(remedy.culprit)}.`,
    ...remedy.changes.flatMap(({ where, lines }) => [
      `  In ${plainText(where)}:`,
      ...lines.map((line) => `      ${changeLine(line, colour)}`),
    ]),
  ]
}

function changeLine(line: string, colour: boolean): string {
  const isRemoval = line.startsWith(removal)
  const text = plainText(isRemoval ? line.slice(removal.length) : line)
  return isRemoval ? styled('red', `- ${text}`, colour) : styled('green', `+ ${text}`, colour)
}

const removal = 'remove: '

function verdict(found: { faults: number; hints: number; server: Server; ms: number }, colour: boolean): string {
  const { faults, hints, server, ms } = found
  const took = styled('dim', ` (${(ms / 1000).toFixed(1)} s)`, colour)
  if (faults > 0) return styled('red', `${counted(faults, 'fault')} found.`, colour) + took
  const also = hints > 0 ? ` ${counted(hints, 'hint')} above.` : ''
  const good = server.kind === 'program' ? 'Streams pass unharmed.' : 'No fault can be seen from outside.'
  return styled('green', good, colour) + also + took
}

import { plainText } from '@rejoin/hub/internal'
import type { Example, OwnLoad, StormReport } from '@rejoin/storm'
import { durationWords } from '../../logging/duration.ts'
import { styled } from '../../logging/style.ts'
import { table } from '../../logging/table.ts'
import { faultWords, grouped, percent, timesWords } from './storm-words.ts'

/** The summary of a storm for a person: figures, hints about them, and the verdict. */
export function stormLines(report: StormReport, { colour, kept }: StormLinesOptions): string[] {
  const hints = hintsOf(report, kept)
  return [
    '',
    ...table(rowsOf(report)).map((line) => `  ${line}`),
    ...(hints.length === 0 ? [] : ['', ...hints.flatMap((hint) => hintLines(hint, colour))]),
    ...(report.examples.length === 0 ? [] : ['', ...report.examples.map(exampleWords)]),
    '',
    styled(report.verdict === 'held' ? 'green' : 'red', verdictWords(report), colour) +
      styled('dim', ` (${(report.ms / 1000).toFixed(1)} s)`, colour),
  ]
}

function hintLines([what, ...advice]: Hint, colour: boolean): string[] {
  return [styled('yellow', `! ${what}`, colour), ...advice.map((line) => `  ${line}`)]
}

export interface StormLinesOptions {
  readonly colour: boolean
  /** Channels that could not be deleted. */
  readonly kept: number
}

function rowsOf({
  plan,
  published,
  delivered,
  faults,
  gaps,
  delayMs,
  catchUpMs,
  connections,
  own,
  publishMs,
}: StormReport): string[][] {
  const { patternReaders, slowReaders, prefix } = plan
  const kinds = [
    ...(patternReaders > 0 ? [`${grouped(patternReaders)} of them ${prefix}/*`] : []),
    ...(slowReaders > 0 ? [`${grouped(slowReaders)} slow`] : []),
  ]
  const { cuts, returns, drops } = connections
  const seconds = publishMs / 1000
  return [
    ['readers', `${grouped(plan.readers)}${kinds.length > 0 ? `, ${kinds.join(', ')}` : ''}`],
    ['channels', `${grouped(plan.channels)}, ${prefix}/0 and on`],
    [
      'published',
      `${grouped(published)} events of ${grouped(plan.size)} characters, ${rateWords(published / seconds)}`,
    ],
    ['delivered', `${grouped(delivered)} events, ${rateWords(delivered / seconds)}`],
    ['delay', timesWords(delayMs)],
    ['cuts', `${grouped(cuts)}${drops > 0 ? `, and ${grouped(drops)} streams that ended by themselves` : ''}`],
    ['returns', catchUpMs ? `${grouped(returns)}, up to date after ${timesWords(catchUpMs)}` : grouped(returns)],
    ['faults', faultWords(faults)],
    ['gaps', gaps.frames === 0 ? 'none' : `${grouped(gaps.frames)} announced, with ${grouped(gaps.events)} events`],
    ['own load', `${percent(own.cpu)} of one core, at worst ${durationWords(Math.round(own.worstDelayMs))} late`],
  ]
}

function rateWords(perSecond: number): string {
  return `${grouped(Math.round(perSecond))}/s`
}

/** Hints that a person needs before trusting the figures, each with advice. */
function hintsOf(report: StormReport, kept: number): Hint[] {
  const { plan, published, connections, faults, failure, own, url } = report
  const { closes, rejections, limitReq, failures, unseenCursors } = connections
  const asked = (plan.forMs / 1000) * plan.rate
  const rejected = { ...rejections, ...closes }
  const isByHub = Object.values(rejected).reduce((sum, count) => sum + count, 0) > limitReq.rejected
  const hints: [applies: boolean, hint: Hint][] = [
    [own.wasBottleneck, ownLoadHint(own)],
    [
      failure !== undefined,
      [`Publishing failed after ${grouped(published)} events:`, ...wrapped(plainText(failure?.message ?? '', 300))],
    ],
    [
      failure === undefined && published < asked * 0.95,
      [
        `${grouped(published)} of ${grouped(asked)} events were published in time.`,
        'Each batch waits for the answer to the last.',
      ],
    ],
    [
      unseenCursors > 0,
      [
        `The hub did not see the cursor of ${grouped(unseenCursors)} returns.`,
        'Something on the way strips Last-Event-ID. Find it with:',
        `rejoin doctor ${url}`,
      ],
    ],
    [
      faults.cursorless > 0,
      [
        `Readers returned ${grouped(faults.cursorless)} times without a cursor, because no event had an id.`,
        'Something on the way strips id:. Find it with:',
        `rejoin doctor ${url}`,
      ],
    ],
    [
      limitReq.delayed + limitReq.rejected > 0,
      [
        `limit_req of nginx delayed ${grouped(limitReq.delayed)} streams and rejected ${grouped(limitReq.rejected)}.`,
        'It limits each address, and all readers of a storm have the same. So the times',
        'of the returns are those of this limit. Use the address of the hub itself, or',
        'raise rate and burst of limit_req.',
      ],
    ],
    [
      isByHub,
      [
        `Readers were rejected: ${listed(rejected)}.`,
        "Look at the hub's settings (limits.*), at its open files (ulimit -n), and at",
        'the limits of proxies.',
      ],
    ],
    [Object.keys(failures).length > 0, [`Connections failed: ${listed(failures)}.`, failureAdvice(failures)]],
    [kept > 0, [`${grouped(kept)} channels could not be deleted.`, 'They stay until their windows let go of them.']],
  ]
  return hints.filter(([applies]) => applies).map(([, hint]) => hint)
}

/** Lines of at most 80 columns. */
type Hint = readonly [what: string, ...advice: string[]]

/** A text in lines that fit behind the indent of a hint. A word that is longer is cut. */
function wrapped(text: string): string[] {
  return text.match(/\S.{0,74}(?=\s|$)|\S{1,75}/g) ?? []
}

function ownLoadHint({ seconds, busySeconds, busy, cpu, worstDelayMs }: OwnLoad): Hint {
  const late = durationWords(Math.round(worstDelayMs))
  return [
    `The storm itself was the bottleneck in ${busySeconds} of ${seconds} s.`,
    `Its event loop was ${percent(busy)} busy and up to ${late} late, with ${percent(cpu)} of one core.`,
    'The delays above are partly its own. The counts of events are right.',
    cpu < busy / 2
      ? 'Other programs take its processor time. Use another machine than the hub has.'
      : 'Use fewer readers or events, or share them between several storms.',
  ]
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${plainText(what, 40)} (${grouped(count)})`)
    .join(', ')
}

function failureAdvice(failures: Readonly<Record<string, number>>): string {
  if ('EMFILE' in failures) return 'This process has no open files left: ulimit -n.'
  if ('EADDRNOTAVAIL' in failures) return 'This machine has no ports left: net.ipv4.ip_local_port_range.'
  if ('ECONNREFUSED' in failures) return 'Nobody listened there at the time.'
  if ('no answer' in failures) return 'The server closed them, or took too long: limits.maxSilentPerIp, its load.'
  return 'The hub, or a proxy, may be out of open files, or its queue too short.'
}

function exampleWords({ fault, reader, selector, event, id }: Example): string {
  const which = event === undefined ? 'an event' : `event ${grouped(event)}`
  const what = {
    lost: `never got ${which}`,
    doubled: `got ${which} again`,
    disordered: `got ${which} after later ones`,
    foreign: 'got an event that was not published for it, or was changed on the way',
    cursorless: 'returned without a cursor',
  }[fault]
  return `  Reader ${reader} of ${selector} ${what}${id === undefined ? '' : ` (id ${plainText(id, 60)})`}.`
}

function verdictWords({ verdict, failure, faults, gaps, missingReaders, published, plan }: StormReport): string {
  if (verdict === 'held') {
    const told = gaps.events > 0 ? ` ${grouped(gaps.events)} are gone, and their readers were told.` : ''
    return `Held: nothing lost, doubled or out of order.${told}`
  }
  if (verdict === 'broken') return `Broken: ${faultWords(faults)}.`
  if (failure && missingReaders === 0) return 'Unfinished: publishing failed. The readers missed nothing until then.'
  if (published === 0) return 'Unfinished: no event was published.'
  const rest = missingReaders < plan.readers ? ' The others missed nothing.' : ''
  return `Unfinished: ${grouped(missingReaders)} of ${grouped(plan.readers)} readers were not back at the end.${rest}`
}

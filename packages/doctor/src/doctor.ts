import { cachingCheck } from './checks/caching.ts'
import { compressionCheck } from './checks/compression.ts'
import { corsCheck } from './checks/cors.ts'
import { disconnectCheck } from './checks/disconnect.ts'
import { httpVersionCheck } from './checks/http-version.ts'
import { idleCheck, silenceCheck } from './checks/silence.ts'
import {
  hasTicks,
  headerCheck,
  heartbeatCheck,
  idsCheck,
  isBetter,
  isSteady,
  queryCheck,
  spacedResult,
  streamCheck,
} from './checks/stream.ts'
import { type FindOptions, type FoundProgram, findServer } from './find-server.ts'
import { examineStream } from './other-stream.ts'
import { openProbe } from './probe-client.ts'
import { type Check, type CheckName, checkNames, type Report } from './report.ts'

/**
 * Finds out what the proxies between this machine and a hub do to streams. Takes seven seconds, or as long as `idleMs`. Rejects
 * with a `RejoinError` when there is no stream to examine.
 */
export async function examine(address: string, options: ExamineOptions = {}): Promise<Report> {
  const startedAt = performance.now()
  const found = await findServer(new URL(address), options)
  const examined = 'probe' in found ? await examineProgram(found, options) : await examineStream(found, options)
  const checks = [found.redirect, ...examined.checks].sort((one, other) => rankOf(one) - rankOf(other))
  return {
    url: address,
    address: 'probe' in found ? found.way.base : found.stream.href,
    server: examined.server,
    checks: explained(checks),
    ms: Math.round(performance.now() - startedAt),
  }
}

export interface ExamineOptions extends FindOptions {
  /**
   * The origin whose pages are to read the stream, such as `https://app.example`.
   * @defaultValue none: CORS is not checked
   */
  readonly origin?: string | undefined
  /**
   * For how long a stream with heartbeats alone has to stay open, in milliseconds; at most 110,000. The doctor takes as long.
   * @defaultValue 0: only a silence of six seconds is tested
   */
  readonly idleMs?: number | undefined
  /** Called whenever a check begins or ends, with the checks that are under way. */
  readonly onProgress?: ((waiting: readonly CheckName[]) => void) | undefined
}

async function examineProgram(found: FoundProgram, options: ExamineOptions) {
  const { way, server, hello, sent } = found
  const { origin, idleMs = 0 } = options
  const waiting = new Set<CheckName>()

  async function run(name: CheckName, check: () => Promise<Check>): Promise<Check> {
    waiting.add(name)
    options.onProgress?.([...waiting])
    try {
      return await check()
    } catch (error) {
      return { name, state: 'unknown', summary: `could not be told: ${(error as Error).message}` }
    } finally {
      waiting.delete(name)
      options.onProgress?.([...waiting])
    }
  }

  const checks = await Promise.all([
    run('stream', () => confirmedStream(found)),
    run('ids', () => ofWholeProbe(found, 'ids', () => idsCheck(found.probe, server))),
    run('heartbeats', () => ofWholeProbe(found, 'heartbeats', () => heartbeatCheck(found.probe, hello, server))),
    run('compression', () => compressionCheck(way, server)),
    run('caching', () => cachingCheck(way, server)),
    run('disconnect', () => disconnectCheck(way, server)),
    run('silence', () => silenceCheck(way, server)),
    ...(idleMs > 0 ? [run('idle', () => idleCheck(way, server, idleMs))] : []),
    ...(origin === undefined ? [] : [run('cors', () => corsCheck(way, server, origin))]),
  ])
  return {
    server,
    checks: [
      ...checks,
      headerCheck(sent.header, hello, server),
      queryCheck(sent.query, hello, server),
      httpVersionCheck(way, server),
      ...(origin === undefined ? [notAsked] : []),
    ],
  }
}

/** A machine that was busy for a second looks like a proxy that holds events back. So a bad result counts after three probes. */
async function confirmedStream({ probe, askedAt, way, server }: FoundProgram): Promise<Check> {
  let best = await spacedResult(probe, askedAt)
  for (let again = 0; again < 2 && !isSteady(best); again += 1) {
    const againAt = performance.now()
    const result = await spacedResult(await openProbe(way, 'spaced'), againAt)
    if (isBetter(result, best)) best = result
  }
  return streamCheck(best, server)
}

async function ofWholeProbe({ probe }: FoundProgram, name: CheckName, check: () => Check): Promise<Check> {
  await probe.reading.ended
  return hasTicks(probe) ? check() : { name, state: 'unknown', summary: 'too little of the stream arrived' }
}

const notAsked: Check = { name: 'cors', state: 'unknown', summary: 'not asked for; name a page with --origin' }

/** Turns the hint on `disconnect` into `unknown` when a fault of `caching` or `stream` causes it: one change mends both. */
function explained(checks: readonly Check[]): Check[] {
  const cause = checks.find(({ name, state }) => state === 'fault' && (name === 'caching' || name === 'stream'))
  if (!cause) return [...checks]
  const why = cause.name === 'caching' ? 'a cache reads on for others' : 'the stream is held back'
  return checks.map((check) =>
    check.name === 'disconnect' && check.state === 'hint'
      ? { name: check.name, state: 'unknown', summary: `cannot be told: ${why}` }
      : check,
  )
}

function rankOf({ name }: Check): number {
  return checkNames.indexOf(name)
}

import { type LogSource, systemEnvironment } from '@rejoin/hub'

/** How long a log takes to open. */
export async function openingMs(source: LogSource): Promise<number> {
  const started = performance.now()
  const log = await source.open(systemEnvironment)
  const ms = performance.now() - started
  await log.close()
  return ms
}

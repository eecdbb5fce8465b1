/**
 * Every attack on `rejoin serve` in turn, then all at once, beside 200 honest readers.
 *
 * With `--http2 1`, on a hub with TLS: the attacks over HTTP/2.
 */
import { join } from 'node:path'
import { type Certificate, makeCertificate, writeCertificate } from '../../support/certificate.ts'
import { judgeCosts } from '../hostile/budget.ts'
import { allAttacks, allHttp2Attacks, runHostile } from '../hostile/hostile.ts'
import { longRun } from '../long-run.ts'

await longRun({
  name: 'hostile',
  inputs: { readers: 200, rate: 20, seconds: 12, together: 30, channels: 100_000, only: 0, http2: 0 },
  async run({ seed, readers, rate, seconds, together, channels, only, http2 }, history, progress, folder) {
    const names = http2 ? allHttp2Attacks : allAttacks
    const { onCost, onEnd } = judgeCosts(progress)
    onEnd(
      await runHostile({
        ...{ history, seed, readers, eventsPerSecond: rate, channels, onCost },
        names: only > 0 ? names.slice(only - 1, only) : names,
        tls: http2 ? writeCertificate(folder, certificate()) : undefined,
        ...{ forMs: seconds * 1000, allForMs: together * 1000, restMs: 4000, recoverMs: 90_000 },
        directory: join(folder, 'log'),
        patience: { client: {}, strict: { silenceMs: 60_000 }, catchUpMs: 45_000 },
      }),
    )
  },
})

function certificate(): Certificate {
  const made = makeCertificate()
  if (!made) throw new Error('HTTP/2 needs a certificate, and openssl to make it is missing.')
  return made
}

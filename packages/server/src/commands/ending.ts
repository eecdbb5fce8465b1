import type { Announcer } from '../announce/announcer.ts'
import { fail, type ProgramHost } from '../program-host.ts'
import type { Serving } from '../serve.ts'

/**
 * Ends the server when a signal asks for it, and when something failed that nobody had thought of: readers are let go and
 * the log is closed. The first signal ends in order; the second, from someone who will not wait, at once.
 */
export function endInOrder(
  serving: Serving,
  host: ProgramHost,
  announcer: Pick<Announcer, 'stopping' | 'failed'>,
): void {
  let ending = false

  function end(options?: Parameters<Serving['close']>[0]): void {
    ending = true
    serving.close(options).catch((error) => fail(host, String(error)))
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    host.on(signal, () => {
      if (ending) return host.exit(1)
      announcer.stopping(signal)
      end()
    })
  }

  for (const mistake of ['uncaughtException', 'unhandledRejection'] as const) {
    host.on(mistake, (cause) => {
      announcer.failed(cause)
      host.exitCode = 1
      // What is left of the program may not be able to end in order.
      if (ending) return host.exit(1)
      setTimeout(() => host.exit(1), failedTimeoutMs).unref()
      end({ withinMs: failedDrainMs })
    })
  }

  if (serving.reloadCertificate) host.on('SIGHUP', serving.reloadCertificate)
}

// Readers are better off with another hub soon, and still not all of them in the same moment.
const failedDrainMs = 500
const failedTimeoutMs = 5000

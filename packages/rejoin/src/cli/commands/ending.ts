import type { Logging } from '../../logging/logging.ts'
import type { Serving } from '../../serve.ts'
import { fail, type ProgramHost } from '../program-host.ts'

/**
 * Ends the server when a signal asks for it, and when something failed that nobody had thought of: readers are let go and
 * the log is closed. The first signal ends in order; the second, from someone who will not wait, at once.
 */
export function endInOrder(
  serving: Serving,
  host: ProgramHost,
  logging: Pick<Logging, 'stopping' | 'failed' | 'warned'>,
): void {
  let ending = false

  function end(options?: Parameters<Serving['close']>[0]): void {
    ending = true
    serving.close(options).catch((error) => fail(host, String(error)))
  }

  function stop(signal: string): void {
    if (ending) {
      host.exit(1)
      return
    }
    logging.stopping(signal)
    end()
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) host.on(signal, () => stop(signal))

  // By default it would end the process and cut every reader, and who sends it means to have something read again.
  host.on('SIGHUP', () => {
    if (serving.reloadCertificate) serving.reloadCertificate()
    // The terminal was closed: nobody is there any more who could end the program.
    else if (host.stdout.isTTY) stop('SIGHUP')
    else logging.warned('SIGHUP changes nothing: there is no certificate to read again. Restart to change settings.')
  })

  for (const mistake of ['uncaughtException', 'unhandledRejection'] as const) {
    host.on(mistake, (cause) => {
      logging.failed(cause)
      host.exitCode = 1
      // What is left of the program may not be able to end in order.
      if (ending) return host.exit(1)
      setTimeout(() => host.exit(1), failedTimeoutMs).unref()
      end({ withinMs: failedDrainMs })
    })
  }
}

// Readers are better off with another hub soon, and still not all of them in the same moment.
const failedDrainMs = 500
const failedTimeoutMs = 5000

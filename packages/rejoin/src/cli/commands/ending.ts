import type { Logging } from '../../logging/logging.ts'
import type { Serving } from '../../serve.ts'
import { fail, type ProgramHost } from '../program-host.ts'

/**
 * Ends the server on a signal, and after an unexpected error: streams are closed, then the log. The first signal ends in order, a
 * second signal at once.
 */
export function endInOrder(
  serving: Serving,
  host: ProgramHost,
  logging: Pick<Logging, 'stopping' | 'failed' | 'ended' | 'warned'>,
): void {
  let ending = false

  function end(options?: Parameters<Serving['close']>[0]): void {
    ending = true
    serving
      .close(options)
      .catch((error) => fail(host, String(error)))
      .finally(() => logging.ended())
  }

  function exit(): void {
    logging.ended()
    host.exit(1)
  }

  function stop(signal: string): void {
    if (ending) {
      exit()
      return
    }
    logging.stopping(signal)
    end()
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const) host.on(signal, () => stop(signal))

  // By default SIGHUP would end the process and cut every reader. Operators send it to make a program read files again.
  host.on('SIGHUP', () => {
    if (serving.reloadCertificate) serving.reloadCertificate()
    // On a terminal, SIGHUP means that the terminal was closed, and nobody is left to end the program.
    else if (host.stdout.isTTY) stop('SIGHUP')
    else logging.warned('SIGHUP changes nothing: there is no certificate to read again. Restart to change settings.')
  })

  for (const mistake of ['uncaughtException', 'unhandledRejection'] as const) {
    host.on(mistake, (cause) => {
      logging.failed(cause)
      host.exitCode = 1
      // After an error the program may be unable to end in order.
      if (ending) return exit()
      setTimeout(exit, failedTimeoutMs).unref()
      end({ withinMs: failedDrainMs })
    })
  }
}

// Readers should move to another hub soon, but not all in the same moment.
const failedDrainMs = 500
const failedTimeoutMs = 5000

import type { Log, LogSource, WindowOptions } from '../log/contract.ts'
import type { IdempotencyOptions } from '../log/idempotency.ts'
import { backDuties } from './back-duties.ts'
import { budgetDuties } from './budget-duties.ts'
import { channelDuties } from './channel-duties.ts'
import { idDuties } from './id-duties.ts'
import { keyDuties } from './key-duties.ts'
import type { Bench } from './log-bench.ts'
import { logDuties } from './log-duties.ts'
import { lossDuties } from './loss-duties.ts'
import { patternDuties } from './pattern-duties.ts'
import { settleTails } from './settled-tails.ts'
import { valueDuties } from './value-duties.ts'
import { createVirtualEnvironment } from './virtual-environment.ts'

export interface LogContractOptions {
  /** The test function of your runner: vitest's, node:test's, Jest's. */
  test(name: string, run: () => Promise<void>): void
  /**
   * Gives a log that no other test uses, with this window, these bounds on its idempotency keys, and this budget (`maxBytes`).
   * Called again with the same `location`, it gives the log that was left there. A log that cannot have a budget ignores
   * `maxBytes`, and has no `budget`.
   */
  source(options: {
    window?: WindowOptions
    idempotency?: IdempotencyOptions
    maxBytes?: number
    location: string
  }): LogSource
  /**
   * Notes what the log at this location holds, and resolves with a function that puts it back, without the events that came
   * since. A server puts it back while the log is open. A log whose copy has to be opened closes itself first, and the function
   * resolves with `reopen`: the test then calls `source` again. For a log that can lose acknowledged events, and knows it.
   * @defaultValue none: the duties about losses are not tested
   */
  rollBack?: ((location: string, log: Log) => Promise<() => Promise<'reopen' | undefined>>) | undefined
  /**
   * Duties that this log cannot have, each with the reason. Their tests are left out. An unknown name is an error.
   * @defaultValue [], all duties are tested
   */
  differs?: readonly { readonly reason: string; readonly tests: readonly string[] }[] | undefined
}

/**
 * The duties of a log, as tests. Run them on every log that you write: the hub relies on each duty.
 *
 * ```ts
 * describe('my log', () => logContract({ test, source: ({ window }) => myLog({ window }) }))
 * ```
 */
export function logContract({ test, source, rollBack, differs = [] }: LogContractOptions): void {
  const leftOut = differs.flatMap((difference) => difference.tests)
  const unknown = leftOut.filter((name) => !(name in duties))
  if (unknown.length > 0) throw new Error(`differs names no duty of the contract: ${unknown.join('; ')}`)

  for (const [name, run] of Object.entries(duties)) {
    if (leftOut.includes(name) || (name in lossDuties && !rollBack)) continue
    test(name, async () => {
      const environment = createVirtualEnvironment()
      const tails = settleTails(environment)
      const opened: Log[] = []
      const location = `${name}-${process.pid}-${environment.random()}`
      let bounds: Parameters<Bench['open']> = []
      const open: Bench['open'] = async (window, idempotency, maxBytes) => {
        bounds = [window, idempotency, maxBytes]
        const given = { ...(window ? { window } : {}), ...(idempotency ? { idempotency } : {}) }
        const options = { location, ...given, ...(maxBytes === undefined ? {} : { maxBytes }) }
        const log = await source(options).open(environment)
        opened.push(log)
        tails.watch(log)
        return log
      }
      const noteAndPutBack = async (log: Log) => {
        const putBack = await rollBack!(location, log)
        return async () => ((await putBack()) === 'reopen' ? open(...bounds) : log)
      }
      try {
        await run({ environment, open, ...(rollBack ? { rollBack: noteAndPutBack } : {}) })
      } finally {
        await Promise.all(opened.map((log) => log.close()))
      }
    })
  }
}

const duties = {
  ...logDuties,
  ...patternDuties,
  ...backDuties,
  ...lossDuties,
  ...channelDuties,
  ...keyDuties,
  ...budgetDuties,
  ...idDuties,
  ...valueDuties,
}

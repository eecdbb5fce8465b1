import type { Answer } from '../support/scripted-answers.ts'

export interface Rule {
  readonly name: string
  /** One for each request, the last one for all that follow. */
  readonly answers: readonly Answer[]
  /**
   * Between the first `open` and the text `end`: `connecting`, `open`, or the type and the data of an event. `closed` alone
   * when it never opens. Where there is a `play`: all that it returns.
   */
  readonly told: readonly string[]
  /** The `Last-Event-ID` of each request, where the rule is about that. */
  readonly cursors?: readonly (string | null)[]
  /** What to do, when it is more than to open it. */
  readonly play?: (place: Place) => Promise<string[]>
  /** Why Chromium's own class does something else. */
  readonly differs?: string
}

export interface Place {
  readonly EventSource: typeof EventSource
  readonly url: string
}

export const rules: readonly Rule[]

/** Opens it, and writes down what it tells until the text `end`, or until it has closed. */
export function open(place: Place): Promise<string[]>

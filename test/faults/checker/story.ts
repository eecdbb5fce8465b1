import { memoryHistory, type UntimedLine } from '../history/history.ts'
import { checkHistory, linesSource, type Report } from './checker.ts'

/**
 * Writes a history by hand, a line at a time. Every line is a millisecond after the one before, unless it says when. Events
 * are named by their number; an event n of channel c has the id `c<n>` and the hash `#c<n>`, unless the line says otherwise.
 */
export function story(): Story {
  const history = memoryHistory()
  let t = 0

  const write = (line: UntimedLine) => {
    t = line.t ?? t + 1
    history.write({ ...line, t })
  }
  const tell: Story = {
    write,
    wait(ms) {
      t += ms
    },
    invoke: (seq, given = {}) =>
      write({ kind: 'invoke', who: 'p', channel: 'a', seq, sha: `#${given.channel ?? 'a'}${seq}`, ...given }),
    ok: (seq, given = {}) =>
      write({ kind: 'ok', who: 'p', channel: 'a', seq, id: `${given.channel ?? 'a'}${seq}`, ...given }),
    unknown: (seq) => write({ kind: 'unknown', who: 'p', channel: 'a', seq, why: 'no answer' }),
    fail: (seq) => write({ kind: 'fail', who: 'p', channel: 'a', seq, why: '400' }),
    publish(seq, given = {}) {
      const { id, ...rest } = given
      tell.invoke(seq, rest)
      tell.ok(seq, { ...(rest.channel ? { channel: rest.channel } : {}), ...(id ? { id } : {}) })
    },
    reader(who, given = {}) {
      write({ kind: 'reader', who, channels: ['a'], once: true, from: null, ...given })
      tell.open(who, given.from ?? null, `start of ${who}`)
    },
    open(who, requested = null, id = requested) {
      write({ kind: 'connect', who, requested })
      write({ kind: 'open', who, requested, resumed: requested !== null, id })
    },
    close: (who, given = {}) => write({ kind: 'close', who, why: 'cut', ...given }),
    recv(who, seq, given = {}) {
      const name = `${given.channel ?? 'a'}${seq}`
      write({ kind: 'recv', who, channel: 'a', seq, id: name, sha: `#${name}`, ...given })
    },
    gap: (who, from, to, given = {}) =>
      write({ kind: 'gap', who, from, to, reason: 'expired', channels: ['a'], ...given }),
    quiet: () => write({ kind: 'quiet' }),
    end: (who) => write({ kind: 'end', who }),
    check: () => checkHistory([linesSource('story', history.lines)]),
    broken() {
      const { counts } = tell.check()
      return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
    },
  }
  return tell
}

export interface Story {
  write(line: UntimedLine): void
  wait(ms: number): void
  invoke(seq: number, given?: { channel?: string; sha?: string; who?: string; bytes?: number; t?: number }): void
  ok(seq: number, given?: { channel?: string; id?: string; who?: string }): void
  unknown(seq: number): void
  fail(seq: number): void
  /** Called and acknowledged. */
  publish(seq: number, given?: { channel?: string; id?: string; sha?: string; bytes?: number }): void
  /** A reader of channel a with an open stream. */
  reader(who: string, given?: { channels?: string[]; once?: boolean; from?: string }): void
  open(who: string, requested?: string | null, id?: string | null): void
  close(who: string, given?: { frames?: number; partial?: string | null; retryMs?: number }): void
  recv(who: string, seq: number, given?: { channel?: string; id?: string; sha?: string }): void
  gap(who: string, from: string | null, to: string, given?: { reason?: string; channels?: string[] }): void
  quiet(): void
  end(who: string): void
  check(): Report
  /** The invariants that do not hold, with their counts. */
  broken(): Record<string, number>
}

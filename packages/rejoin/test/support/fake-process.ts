import { EventEmitter } from 'node:events'
import { runProgram } from '../../src/cli/program.ts'
import type { ProgramHost } from '../../src/cli/program-host.ts'

export interface FakeProcess {
  readonly host: ProgramHost
  readonly stdout: string[]
  readonly stderr: string[]
  /** Both, in the order in which they were written. */
  readonly output: string[]
  readonly exits: number[]
  emit(event: string, cause?: unknown): void
  /** What becomes of its standard output. */
  emitOutput(event: 'error' | 'drain', cause?: unknown): void
}

export interface FakeProcessOptions {
  readonly env?: Record<string, string>
  /** What it reads; nothing, as from a terminal, when left out. */
  readonly stdin?: string | readonly (string | Uint8Array)[]
  /** Whether a person looks at what it writes. */
  readonly isTTY?: boolean
}

/** A process that the program can end without ending ours. */
export function fakeProcess({ env = {}, stdin, isTTY = false }: FakeProcessOptions = {}): FakeProcess {
  const stdout: string[] = []
  const stderr: string[] = []
  const output: string[] = []
  const exits: number[] = []
  const writeTo = (texts: string[]) => (text: string) => {
    texts.push(text)
    output.push(text)
  }
  const events = new EventEmitter()
  const outputEvents = new EventEmitter()
  const host: ProgramHost = {
    stdin: Object.assign(parts(stdin), { isTTY: stdin === undefined }),
    stdout: {
      isTTY,
      write: writeTo(stdout),
      on: (event, listener) => outputEvents.on(event, listener),
      once: (event, listener) => outputEvents.once(event, listener),
    },
    stderr: { isTTY, write: writeTo(stderr) },
    env,
    exitCode: undefined,
    on: (event: string, listener: (cause?: unknown) => void) => events.on(event, listener),
    exit: (code) => exits.push(code),
  }
  return {
    ...{ host, stdout, stderr, output, exits },
    emit: (event, cause) => void events.emit(event, cause),
    emitOutput: (event, cause) => void outputEvents.emit(event, cause),
  }
}

/** Does what the command line says, and gives what it said. */
export async function run(args: readonly string[], options?: FakeProcessOptions) {
  const { host, stdout, stderr } = fakeProcess(options)
  await runProgram(args, host)
  return { exitCode: host.exitCode ?? 0, stdout: stdout.join(''), stderr: stderr.join('') }
}

async function* parts(stdin: FakeProcessOptions['stdin'] = []): AsyncGenerator<string | Uint8Array> {
  yield* typeof stdin === 'string' ? [stdin] : stdin
}

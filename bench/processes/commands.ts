/** What a child process can be asked to do, by name. */
export type Commands = Readonly<Record<string, (argument: never) => unknown>>

export interface Call {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

export type Reply = { readonly id: number } & ({ readonly result: unknown } | { readonly error: string })

/** Answers the calls of the process that forked this one, and ends with it. */
export function answerCalls(commands: Commands): void {
  process.on('message', (call: Call) => void answer(commands, call))
  process.on('disconnect', () => process.exit())
}

async function answer(commands: Commands, { id, name, argument }: Call): Promise<void> {
  try {
    const result = await commands[name]!(argument as never)
    reply({ id, result })
  } catch (error) {
    reply({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
}

function reply(message: Reply): void {
  // A parent that has just left makes the write fail; `disconnect` follows and ends this process.
  process.send!(message, undefined, undefined, () => {})
}

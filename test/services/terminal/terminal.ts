import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { program } from '../../support/paths.ts'

/** A terminal in a folder of its own, with the program as `rejoin` on its path. */
export async function openProgramTerminal(
  env: Readonly<Record<string, string>> = {},
  size: TerminalSize = {},
): Promise<Terminal> {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-terminal-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'rejoin'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 })
  return openTerminal(folder, { PATH: `${folder}:${process.env.PATH}`, ...env }, size)
}

export interface TerminalSize {
  /** @defaultValue 160 */
  readonly columns?: number
}

/** A shell in a real pseudo-terminal, which tmux keeps and can show. It goes with the test. */
async function openTerminal(
  folder: string,
  env: Readonly<Record<string, string>>,
  { columns = 160 }: TerminalSize,
): Promise<Terminal> {
  // A server of its own for each, so that neither another test nor the user's own tmux is touched.
  count += 1
  const socket = `rejoin-test-${process.pid}-${count}`
  // Not by tmux's -e: tmux (3.3) gives the shell the PATH of whoever called tmux, whatever -e says.
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const shell = ['env', 'PS1=$ ', ...settings, 'sh']
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(columns), '-y', '120', '-c', folder, ...shell)
  onTestFinished(() => void tmux('kill-server'))
  const record = join(folder, 'written')
  writeFileSync(record, '')
  tmux('pipe-pane', `exec cat >> ${record}`)

  function tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', socket, ...args], { encoding: 'utf8' })
  }

  /** What is on the screen, without the empty lines below. */
  function screen({ colours = false }: ScreenOptions = {}): string {
    return tmux('capture-pane', '-p', ...(colours ? ['-e'] : [])).trimEnd()
  }

  const shows = (pattern: RegExp) => expect.poll(() => screen(), patience).toMatch(pattern)
  const type = (line: string) => void tmux('send-keys', line, 'Enter')
  // What is typed before there is a prompt shows before it.
  await shows(/^\$$/)
  return {
    screen,
    type,
    shows,
    written: () => readFileSync(record, 'utf8'),
    press: (key) => void tmux('send-keys', key),
    async run(command, options) {
      const line = `${command}; echo "exit $?"`
      const answer = () => screen(options).split(`$ ${line}\n`)[1] ?? ''
      type(line)
      await expect.poll(answer, patience).toMatch(/exit \d+\n\$$/)
      return answer().replace(/\n\$$/, '')
    },
  }
}

const patience = { timeout: 20_000, interval: 50 }
let count = 0

export interface Terminal {
  screen(options?: ScreenOptions): string
  /** Types a command that was not typed before, waits until it is over, and gives what it wrote, and its exit code. */
  run(command: string, options?: ScreenOptions): Promise<string>
  type(line: string): void
  /** A key by tmux's name for it, such as `C-c`. */
  press(key: string): void
  shows(pattern: RegExp): Promise<void>
  /** All that has been on the screen, for what is soon written over. */
  written(): string
}

interface ScreenOptions {
  /** Whether the screen is given with the sequences that colour it. */
  readonly colours?: boolean
}

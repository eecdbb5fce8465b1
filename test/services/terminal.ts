import { execFileSync } from 'node:child_process'
import { expect, onTestFinished } from 'vitest'

/** A shell in a real pseudo-terminal, which tmux keeps and can show. It goes with the test. */
export function openTerminal(folder: string, env: Readonly<Record<string, string>> = {}): Terminal {
  // A server of its own for each, so that neither another test nor the user's own tmux is touched.
  count += 1
  const socket = `rejoin-test-${process.pid}-${count}`
  const settings = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const shell = ['env', 'PS1=$ ', 'sh']
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '40', '-c', folder, ...settings, ...shell)
  onTestFinished(() => void tmux('kill-server'))

  function tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', socket, ...args], { encoding: 'utf8' })
  }

  /** What is on the screen, without the empty lines below. */
  function screen({ colours = false } = {}): string {
    return tmux('capture-pane', '-p', ...(colours ? ['-e'] : [])).trimEnd()
  }

  return {
    screen,
    type: (line) => void tmux('send-keys', line, 'Enter'),
    press: (key) => void tmux('send-keys', key),
    shows: (pattern) => expect.poll(screen, { timeout: 20_000, interval: 50 }).toMatch(pattern),
  }
}

let count = 0

export interface Terminal {
  screen(options?: { colours?: boolean }): string
  type(line: string): void
  /** A key by tmux's name for it, such as `C-c`. */
  press(key: string): void
  shows(pattern: RegExp): Promise<void>
}

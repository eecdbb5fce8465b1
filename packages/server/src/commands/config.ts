import type { LoadedConfig, SettingValue } from '../config/load.ts'
import type { ProgramHost } from '../program-host.ts'

/** Prints every setting, its value and who said so. Secrets are not shown, only that they are set. */
export function runConfig({ values, unread }: LoadedConfig, { stdout, stderr }: ProgramHost, asJson = false): void {
  if (asJson) {
    for (const { setting, value = null, origin } of values) {
      const known = setting.secret && value !== null ? { set: true } : { value }
      stdout.write(`${JSON.stringify({ key: setting.key, ...known, origin })}\n`)
    }
    for (const variable of unread) stderr.write(`${variable} is set, and is no setting: it is not read.\n`)
    return
  }
  const rows = values.map((each) => [each.setting.key, shown(each), each.origin] as const)
  const keyWidth = widest(rows.map(([key]) => key))
  const valueWidth = widest(rows.map(([, value]) => value))
  for (const [key, value, origin] of rows) {
    stdout.write(`${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${origin}\n`)
  }
  for (const variable of unread) stdout.write(`\n${variable} is set, and is no setting: it is not read.\n`)
}

function shown({ setting, value }: SettingValue): string {
  if (value === undefined) return `(${setting.otherwise})`
  if (setting.secret) return 'set'
  if (typeof value !== 'string') return JSON.stringify(value)
  return setting.shown ? setting.shown(value) : value
}

/** Of those that fit; one long value must not push everything off the screen. */
function widest(texts: readonly string[]): number {
  return Math.max(...texts.map(({ length }) => length).filter((length) => length <= 40))
}

import type { LoadedConfig, SettingValue } from '../config/load.ts'
import { createOutput } from '../output/output.ts'
import type { ProgramHost } from '../program-host.ts'

/** Prints every setting, its value and who said so. Secrets are not shown, only that they are set. */
export async function runConfig({ values, unread }: LoadedConfig, host: ProgramHost, asJson = false): Promise<void> {
  const output = createOutput(host)
  for (const line of asJson ? values.map(jsonOf) : linesOf(values)) await output.line(line)
  const unknown = unread.map((variable) => `${variable} is set, and is no setting: it is not read.`)
  for (const line of unknown) {
    if (asJson) host.stderr.write(`${line}\n`)
    else await output.line(`\n${line}`)
  }
}

function jsonOf({ setting, value = null, origin }: SettingValue): string {
  const known = setting.secret && value !== null ? { set: true } : { value: withoutSecrets(setting, value) }
  return JSON.stringify({ key: setting.key, ...known, origin })
}

function linesOf(values: readonly SettingValue[]): string[] {
  const rows = values.map((each) => [each.setting.key, shown(each), each.origin] as const)
  const keyWidth = widest(rows.map(([key]) => key))
  const valueWidth = widest(rows.map(([, value]) => value))
  return rows.map(([key, value, origin]) => `${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${origin}`)
}

function shown({ setting, value }: SettingValue): string {
  if (value === undefined) return `(${setting.otherwise})`
  if (setting.secret) return 'set'
  const plain = withoutSecrets(setting, value)
  return typeof plain === 'string' ? plain : JSON.stringify(plain)
}

function withoutSecrets({ shown }: SettingValue['setting'], value: unknown): unknown {
  return shown && typeof value === 'string' ? shown(value) : value
}

/** Of those that fit; one long value must not push everything off the screen. */
function widest(texts: readonly string[]): number {
  return Math.max(...texts.map(({ length }) => length).filter((length) => length <= 40))
}

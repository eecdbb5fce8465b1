import { closestName } from '../../closest-name.ts'
import { checkSettings } from '../../config/checks.ts'
import type { LoadedConfig, SettingValue } from '../../config/load.ts'
import { settings, variableOf } from '../../config/settings.ts'
import { table } from '../../logging/table.ts'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'

/**
 * Prints every setting with its value and its origin. Of a secret it prints only that it is set. Then it fails with every problem
 * for which `serve` would not start.
 */
export async function runConfig(loaded: LoadedConfig, host: ProgramHost, asJson = false): Promise<void> {
  const { values, unread } = loaded
  const output = createOutput(host)
  for (const line of asJson ? values.map(jsonOf) : linesOf(values)) await output.line(line)
  const unknown = unread.map(unknownVariable)
  for (const line of unknown) {
    if (asJson) host.stderr.write(`${line}\n`)
    else await output.line(`\n${line}`)
  }
  await checkSettings(loaded)
}

function unknownVariable(name: string): string {
  const meant = closestName(name, settings.map(variableOf))
  const advice = meant === undefined ? '' : ` Did you mean ${meant}?`
  return `${name} is set, and is not a setting: it is not read.${advice}`
}

function jsonOf({ setting, value = null, origin }: SettingValue): string {
  const known = setting.secret && value !== null ? { set: true } : { value: withoutSecrets(setting, value) }
  return JSON.stringify({ key: setting.key, ...known, origin })
}

function linesOf(values: readonly SettingValue[]): string[] {
  return table(values.map((each) => [each.setting.key, shown(each), each.origin]))
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

import * as v from 'valibot'
import { invalidOption } from '../errors.ts'
import type { Config } from './config.ts'
import { readConfigFile } from './file.ts'
import { describeIssue, inOneText } from './issue.ts'
import { jsonMistake } from './json-mistake.ts'
import { logKindOf } from './log-location.ts'
import { flagOf, type Setting, settings, variableOf } from './settings.ts'

/** Loads all settings. A flag counts before the environment, the environment before the file, and the file before the default. */
export async function loadConfig(given: Given): Promise<LoadedConfig> {
  const file = await readConfigFile(given.file ?? given.env.REJOIN_CONFIG)
  const problems: string[] = []
  const values = settings.map((setting) => {
    const said = inFlags(setting, given.flags) ?? inEnvironment(setting, given.env)
    return { setting, ...(said ?? { origin: 'default', value: setting.default }) } as SettingValue
  })

  for (const { setting, origin, value } of values) {
    if (origin === 'default') continue
    const { issues = [] } = v.safeParse(setting.kind.schema, value)
    // Of JSON that could not be read, `value` is the text.
    const isBroken = issues.length > 0 && setting.kind.argument === 'json' && value === given.env[origin]
    if (isBroken) problems.push(await brokenJson(origin, value as string, setting))
    else for (const issue of issues) problems.push(describeIssue(issue, origin, setting))
  }
  if (file) {
    const { issues = [] } = v.safeParse(fileSchema, file.content)
    for (const issue of issues) problems.push(describeIssue(issue, file.name))
  }
  if (problems.length > 0) throw invalidOption(inOneText(problems))

  const said = values.map((each) => {
    const inFile = each.origin === 'default' ? valueAt(file?.content, each.setting.key) : undefined
    return inFile === undefined ? each : { ...each, origin: file?.name ?? '', value: inFile }
  })
  // With --chaos, tests lose events on purpose. They must not lose those in the data folder of this machine.
  const logged = asConfig(said).chaos ? said.map(inMemory) : said
  const kind = logKindOf(asConfig(logged).log)
  const effective = logged.map((each) => ({ ...each, value: each.value ?? each.setting.defaultByLog?.[kind] }))
  return { config: asConfig(effective), values: effective, unread: unreadVariables(given.env) }
}

export interface Given {
  /** The flags by their names, without the leading dashes. */
  readonly flags: Readonly<Record<string, string | readonly string[] | boolean>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** The file that `--config` names. */
  readonly file?: string | undefined
}

export interface LoadedConfig {
  readonly config: Config
  readonly values: readonly SettingValue[]
  /** Variables that begin with `REJOIN_` and have no meaning. */
  readonly unread: readonly string[]
}

export interface SettingValue {
  readonly setting: Setting
  /** A flag, a variable, the name of the file, or `default`. */
  readonly origin: string
  /** Undefined for a setting that was left out and has no default. */
  readonly value: unknown
}

function inMemory(value: SettingValue): SettingValue {
  return value.setting.key === 'log' && value.origin === 'default' ? { ...value, value: 'memory' } : value
}

type Said = Pick<SettingValue, 'origin' | 'value'>

function inFlags(setting: Setting, flags: Given['flags']): Said | undefined {
  const said = flags[flagOf(setting)]
  if (said === undefined) return undefined
  const value =
    typeof said === 'string'
      ? setting.kind.read(said)
      : Array.isArray(said)
        ? said.flatMap((item) => setting.kind.read(item))
        : said
  return { origin: `--${said === false ? 'no-' : ''}${flagOf(setting)}`, value }
}

function inEnvironment(setting: Setting, env: Given['env']): Said | undefined {
  const text = env[variableOf(setting)]
  // An empty variable counts as unset: shells and compose files leave a variable out in this way.
  return text === undefined || text === '' ? undefined : { origin: variableOf(setting), value: setting.kind.read(text) }
}

async function brokenJson(origin: string, text: string, { kind }: Setting): Promise<string> {
  return `${origin} is not JSON: ${await jsonMistake(text)}. Give ${kind.allowed}.`
}

const fileSchema = schemaOf(settings.map((setting) => ({ keys: setting.key.split('.'), schema: setting.kind.schema })))

interface Leaf {
  readonly keys: readonly string[]
  readonly schema: v.GenericSchema
}

/** A schema of nested objects, by the parts of the keys. Every key may be left out, and no other key is allowed. */
function schemaOf(leaves: readonly Leaf[]): v.GenericSchema {
  const entries: Record<string, v.GenericSchema> = {}
  for (const {
    keys: [first = ''],
  } of leaves) {
    const below = leaves
      .filter(({ keys }) => keys[0] === first)
      .map(({ keys, ...leaf }) => ({ ...leaf, keys: keys.slice(1) }))
    const [only] = below
    entries[first] = v.optional(only && only.keys.length === 0 ? only.schema : schemaOf(below))
  }
  // A list is an object too, and its method `keys` would be taken for a setting.
  return v.pipe(
    v.custom((group) => !Array.isArray(group)),
    v.strictObject(entries),
  )
}

function valueAt(content: unknown, key: string): unknown {
  return key.split('.').reduce((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], content)
}

function asConfig(values: readonly SettingValue[]): Config {
  const config: Record<string, unknown> = {}
  for (const { setting, value } of values) {
    if (value === undefined) continue
    const keys = setting.key.split('.')
    const last = keys.pop() as string
    const inner = keys.reduce((outer: Record<string, unknown>, name) => {
      outer[name] ??= {}
      return outer[name] as Record<string, unknown>
    }, config)
    inner[last] = value
  }
  // Each value was checked by its own kind, and a test compares the keys.
  return config as unknown as Config
}

function unreadVariables(env: Given['env']): string[] {
  const read = new Set(['REJOIN_CONFIG', 'REJOIN_TOKEN', 'REJOIN_URL', ...settings.map(variableOf)])
  return Object.keys(env)
    .filter((name) => name.startsWith('REJOIN_') && !read.has(name))
    .sort()
}

import { readFileSync } from 'node:fs'
import { maxBodyBytes, maxSelectors } from '@rejoin/hub/internal'
import { describe, expect, test } from 'vitest'
import { flagOf, hasFlag, type Setting, settings } from '../../src/config/settings.ts'

const page = readFileSync(new URL('../../../../docs/reference/config.md', import.meta.url), 'utf8')

describe('docs/reference/config.md has a line for every setting, with its flag and its default', () => {
  test.each(settings.map((setting) => [setting.key, setting] as const))('%s', (key, setting) => {
    const [line] = page.split('\n').filter((each) => each.startsWith(`| \`${key}\` |`))
    expect(line?.split(' | ').slice(1, 3)).toEqual([flagShown(setting), defaultShown(setting)])
  })

  test('and no other', () => {
    const keys = [...page.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, key]) => key)
    expect(keys).toEqual(settings.map(({ key }) => key))
  })
})

test.each([
  ['limits.maxChannels', maxSelectors],
  ['limits.maxBodyBytes', maxBodyBytes],
])('%s can be as large as a hub takes it, and not larger', (key, most) => {
  const setting = settings.find((each) => each.key === key)
  expect(setting).toMatchObject({ default: most, kind: { allowed: `a whole number from 1 to ${most}` } })
})

function flagShown(setting: Setting): string {
  if (!hasFlag(setting)) return 'none'
  const flag = flagOf(setting)
  if (setting.kind.argument !== undefined || setting.default === false) return `\`--${flag}\``
  return setting.default === true ? `\`--no-${flag}\`` : `\`--${flag}\`, \`--no-${flag}\``
}

function defaultShown({ default: value, defaultByLog, otherwise }: Setting): string {
  if (defaultByLog) {
    const { lmdb, memory, redis } = defaultByLog
    return `\`${lmdb}\`, in memory \`${memory}\`, in Redis \`${redis}\``
  }
  return value === undefined ? `${otherwise}` : `\`${value}\``
}

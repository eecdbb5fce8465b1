import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { exitCodes } from '../../src/cli/exit-code.ts'
import { commandLine } from '../../src/cli/program.ts'
import { fakeProcess } from '../support/fake-process.ts'

const page = readFileSync(new URL('../../../../docs/reference/cli.md', import.meta.url), 'utf8')
const commands = leaves(commandLine(fakeProcess().host))

test('docs/reference/cli.md lists every command with its arguments, and no other', () => {
  const listed = [...page.matchAll(/^\| `(rejoin [^`]+)` \|/gm)].map(([, usage]) => usage)
  expect(listed.sort()).toEqual(commands.map(usageOf).sort())
})

describe('docs/reference/cli.md has a line for every flag', () => {
  const documented = commands.filter((command) => !['serve', 'config'].includes(command.name()))
  test.each(documented.map((command) => [usageOf(command), command] as const))(
    'of %s, and no other',
    (usage, command) => {
      const shared = command.options.some(({ long }) => long === '--url') ? flagsIn(sectionOf('Which hub?')) : []
      const flags = command.options.map((option) => option.flags)
      expect([...flagsIn(sectionOf(`\`${usage}\``)), ...shared].sort()).toEqual(flags.sort())
    },
  )
})

test('docs/reference/cli.md has a line for every exit code, and no other', () => {
  const listed = [...page.matchAll(/^\| `(\d+)` \| `(\w+)` \|/gm)].map(([, code, name]) => [name, Number(code)])
  expect(Object.fromEntries(listed)).toEqual(exitCodes)
})

function leaves(command: Command): Command[] {
  return command.commands.flatMap((each) => (each.commands.length > 0 ? leaves(each) : [each]))
}

function usageOf(command: Command): string {
  const args = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`
    return argument.required ? `<${name}>` : `[${name}]`
  })
  const names: string[] = []
  for (let each: Command | null = command; each; each = each.parent) names.unshift(each.name())
  return [...names, ...args].join(' ')
}

function sectionOf(heading: string): string {
  return page.split(/^## /m).find((section) => section.startsWith(`${heading}\n`)) ?? ''
}

function flagsIn(section: string): string[] {
  return [...section.matchAll(/^\| `(--[^`]+)` \|/gm)].map(([, flag]) => flag as string)
}

import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

const pages = trackedFiles('*.md').filter((file) => file !== 'CHANGELOG.md')

/** What the pages say, by page, for a message that tells where to look. */
function named(pattern: RegExp): { page: string; name: string }[] {
  return pages.flatMap((page) => [...readText(page).matchAll(pattern)].map(([, name = '']) => ({ page, name })))
}

test('every metric that a page names is in docs/reference/metrics.md', () => {
  const metrics = new Set(
    [...readText('docs/reference/metrics.md').matchAll(/^\| `(rejoin_\w+)`/gm)].map(([, name]) => name),
  )
  const mentioned = named(/\b(rejoin_[a-z]\w*(?<!_))\b/g)
  expect(mentioned.length).toBeGreaterThan(20)
  const unknown = mentioned.filter(({ name }) => !metrics.has(name.replace(/_(?:bucket|sum|count)$/, '')))
  expect(unknown).toEqual([])
})

test('every path of the admin API that a page names is in docs/reference/serve.md', () => {
  const paths = new Set(
    [...readText('docs/reference/serve.md').matchAll(/(?:GET|POST|DELETE) (\/admin\/\w+)/g)].map(([, path]) => path),
  )
  const mentioned = named(/(\/admin\/[a-z]+)/g)
  expect(mentioned.length).toBeGreaterThan(10)
  expect(mentioned.filter(({ name }) => !paths.has(name))).toEqual([])
})

test('every flag that a page gives a command of `rejoin` is a flag of that command', () => {
  const mentioned = pages.flatMap((page) => flagsByCommand(readText(page)).map((flag) => ({ page, ...flag })))
  const commands = new Set(mentioned.map(({ command }) => command))
  for (const command of ['serve', 'migrate ids', 'doctor', 'storm', 'backup', 'restore'])
    expect(commands).toContain(command)
  expect(mentioned.filter(({ command, flag }) => !flagsOf(command).includes(flag))).toEqual([])
})

test('every flag of a line counts, and a line may go on behind a backslash', () => {
  const text =
    'rejoin tail orders --last 3 \\\n  --json | jq\n`rejoin token mint --ttl 60`, `rejoin --port 1`\nrejoin --chaos\nkubectl rejoin --no'
  expect(flagsByCommand(text)).toEqual([
    { command: 'tail', flag: '--last' },
    { command: 'tail', flag: '--json' },
    { command: 'token mint', flag: '--ttl' },
    { command: 'serve', flag: '--port' },
    { command: 'serve', flag: '--chaos' },
  ])
})

/** The flags that a text gives to commands. At the beginning of a line or of code, `rejoin` alone is `rejoin serve`. */
function flagsByCommand(text: string): { command: string; flag: string }[] {
  const call = new RegExp(`\\brejoin (${commandNames().join('|')})\\b([^\\n\`|]*)|(?<=^|\`)rejoin( --[^\\n\`|]*)`, 'gm')
  const calls = text.replaceAll(/\\\n\s*/g, '').matchAll(call)
  return [...calls].flatMap(([, command = 'serve', given, givenToServe]) =>
    [...(given ?? givenToServe ?? '').matchAll(/(?<= )--[a-z][\w-]*/g)].map(([flag]) => ({ command, flag })),
  )
}

function commandNames(): string[] {
  const rows = readText('docs/reference/cli.md').matchAll(/^\| `rejoin ([a-z]+(?: [a-z]+)*)/gm)
  return [...rows].map(([, name = '']) => name)
}

/** The flags in the reference of a command, and those by which several commands find their hub. */
function flagsOf(command: string): string[] {
  const sections = readText('docs/reference/cli.md').split(/^## /m)
  const own = sections.filter(
    (section) => section.startsWith(`\`rejoin ${command}`) || section.startsWith('Which hub?'),
  )
  const settings = command === 'serve' || command === 'config' ? [readText('docs/reference/config.md')] : []
  const flags = [...own, ...settings].flatMap((section) => [...section.matchAll(/`(--[a-z][\w-]*)/g)])
  return [...flags.map(([, flag = '']) => flag), '--help']
}

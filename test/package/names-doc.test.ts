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

test('every flag that a page gives a command of `rejoin` is in docs/reference/config.md or docs/reference/cli.md', () => {
  const reference = `${readText('docs/reference/config.md')}${readText('docs/reference/cli.md')}`
  const mentioned = named(
    /\brejoin (?:serve|config|publish|tail|channels|token mint|token explain|drain|migrate)\b[^\n`|]*?(--[a-z][\w-]*)/g,
  )
  expect(mentioned.length).toBeGreaterThan(10)
  expect(mentioned.filter(({ name }) => !reference.includes(`${name}\``) && !reference.includes(`${name} `))).toEqual(
    [],
  )
})

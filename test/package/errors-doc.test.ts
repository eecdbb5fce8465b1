import { errorCodes } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { readText } from '../support/repository.ts'

test('the reference explains every error code, and no other', () => {
  const headings = [...readText('docs/reference/errors.md').matchAll(/^## `(.+)`$/gm)].map(([, code]) => code)
  expect(headings).toEqual([...errorCodes])
})

test('the reference says with which status each code is answered over HTTP', () => {
  const source = readText('packages/hub/src/http/answer.ts')
  const table = /const statusOf[^{]*\{\n([\s\S]*?)\n\}/.exec(source)?.[1] ?? ''
  const statuses = [...table.matchAll(/^ {2}'?([\w-]+)'?: (\d+),/gm)].map(([, code = '', status = '']) => ({
    code,
    status,
  }))
  expect(statuses.length).toBeGreaterThan(8)
  const sections = readText('docs/reference/errors.md').split(/^## /m)
  const silent = statuses.filter(
    ({ code, status }) => !sections.find((section) => section.startsWith(`\`${code}\``))?.includes(`\`${status}\``),
  )
  expect(silent).toEqual([])
})

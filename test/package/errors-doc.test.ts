import { errorCodes } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { readText } from './repository.ts'

test('the reference explains every error code, and no other', () => {
  const headings = [...readText('docs/reference/errors.md').matchAll(/^## `(.+)`$/gm)].map(([, code]) => code)
  expect(headings).toEqual([...errorCodes])
})

import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

test('every file that ARCHITECTURE.md names is there', () => {
  const files = trackedFiles('*.ts')
  const named = [...readText('ARCHITECTURE.md').matchAll(/[`"]([\w/.-]+\.ts)[`"]/g)].map(([, file = '']) => file)
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))).toEqual([])
})

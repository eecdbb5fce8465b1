import { expect, test } from 'vitest'
import { readJson } from '../support/repository.ts'

test('the lock file names no registry, so that an install asks the one its user has chosen', () => {
  const lock = readJson<{ packages: Record<string, { resolved?: string }> }>('package-lock.json')
  const addresses = Object.values(lock.packages).flatMap(({ resolved }) => resolved ?? [])
  expect(addresses.filter((address) => address.includes('://'))).toEqual([])
})

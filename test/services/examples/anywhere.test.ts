import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../../support/paths.ts'

test('publish-from-anywhere publishes from curl, Python and PHP, each with a token of its own', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['examples/publish-from-anywhere/main.js'], {
    cwd: root,
  })
  const ids = [...stdout.matchAll(/published (\S+)\n {2}got (\S+) from (\S+)\n/g)]
  expect(ids.map(([, , , from]) => from)).toEqual(['curl', 'Python', 'PHP'])
  for (const [, published, got] of ids) expect(got).toBe(published)
})

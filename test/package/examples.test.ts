import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from './repository.ts'

const run = promisify(execFile)

async function example(name: string): Promise<string> {
  const { stdout } = await run(process.execPath, [`examples/${name}/main.js`], { cwd: root })
  return stdout
}

test('cut-and-return prints every number once, in order, across its cut', async () => {
  const printed = await example('cut-and-return')
  const numbers = [...printed.matchAll(/got (\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
  expect(printed).toContain('cut\nbackoff\n')
})

test('publish-from-node publishes every number once, although its answers get lost', async () => {
  const printed = await example('publish-from-node')
  expect([...printed.matchAll(/got (\d+)/g)].map(([, number]) => Number(number))).toEqual([1, 2, 3, 4, 5])
  expect(printed.match(/answer lost/g)).toHaveLength(5)
})

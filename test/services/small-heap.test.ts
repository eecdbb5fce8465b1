import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { root } from '../support/paths.ts'

// Fills the heap a little in each turn until V8 ends the process, and tells how full the hub takes it to be.
const fill = `
import { writeSync } from 'node:fs'
import { systemEnvironment } from '@rejoin/hub'
const kept = []
function turn() {
  for (let count = 0; count < 5000; count += 1) kept.push({ count, text: 'x' + count })
  writeSync(1, systemEnvironment.heapUsed() + '\\n')
  setImmediate(turn)
}
turn()
`

const option = '--max-old-space-size=64'

test.each([
  ['the command line', { args: [option], env: {} }],
  ['NODE_OPTIONS', { args: [], env: { NODE_OPTIONS: option } }],
])('a hub notices that a small heap is nearly full before the heap ends, when %s bounds it', (_, { args, env }) => {
  const { stdout, signal } = spawnSync(process.execPath, [...args, '--input-type=module', '-e', fill], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  expect(signal).toBe('SIGABRT')
  const seen = stdout.trim().split('\n').map(Number)
  expect(seen[0]).toBeLessThan(0.5)
  // Above 0.85, readers are told longer times.
  expect(seen.filter((share) => share > 0.85).length).toBeGreaterThan(5)
})

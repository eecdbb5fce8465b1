import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../support/paths.ts'

test('every alert fires where it has to and is silent where it must be, as Prometheus itself reckons', async () => {
  const { stdout } = await promtool('test', 'rules', 'rejoin.test.yml')
  expect(stdout).toContain('SUCCESS')
})

test('Prometheus takes the scrape configuration with its rules', async () => {
  const { stdout } = await promtool('check', 'config', 'prometheus.yml')
  expect(stdout).toContain('is valid prometheus config file syntax')
})

function promtool(...args: string[]) {
  return promisify(execFile)('promtool', args, { cwd: `${root}deploy/prometheus` })
}

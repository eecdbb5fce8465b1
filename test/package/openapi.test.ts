import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../support/paths.ts'

test('openapi.json passes the linter', async () => {
  const rules = ['--extends=recommended', '--skip-rule=operation-4xx-response']
  // The linter would report its use, and ask for a newer version of itself.
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const linter = promisify(execFile)(
    process.execPath,
    [`${root}node_modules/@redocly/cli/bin/cli.js`, 'lint', 'packages/rejoin/openapi.json', ...rules, '--format=json'],
    { cwd: root, env },
  )
  // With problems, it fails and lists them all the same.
  const { stdout } = await linter.catch((error) => error)
  expect(JSON.parse(stdout)).toMatchObject({ totals: { errors: 0, warnings: 0 }, problems: [] })
})

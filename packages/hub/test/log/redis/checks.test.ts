import { expect, test } from 'vitest'
import { checkServer } from '../../../src/log/redis/checks.ts'

test.each(['6.2.14', '5.0.0', ''])('a Redis of version "%s" is rejected, with the one that is needed', (version) => {
  const info = `# Server\r\nredis_version:${version}\r\nrun_id:1\r\n`
  expect(() => checkServer.version(info)).toThrow(/needs 7.0 or later/)
  expect(() => checkServer.version('')).toThrow(/version unknown/)
})

test.each(['7.0.0', '8.2.1', '10.0.0'])('a Redis of version %s is taken', (version) => {
  const info = `# Server\r\nredis_version:${version}\r\n`
  expect(checkServer.version(info)).toBe(info)
})

test.each(['run_id', 'master_replid'])('a Redis that does not tell its %s is rejected, with the reason', (field) => {
  const info = 'run_id:1\r\nmaster_replid:2\r\n'
  expect(checkServer.identity(info)).toEqual({ run: '1', lineage: '2' })
  for (const hidden of [
    info.replace(new RegExp(`${field}:.`), `${field}:`),
    info.replace(new RegExp(`${field}:.\r\n`), ''),
  ])
    expect(() => checkServer.identity(hidden)).toThrow(`INFO has no ${field}. A log on it could lose events`)
})

test('a Redis that evicts is rejected, whatever it evicts', () => {
  for (const policy of ['allkeys-lru', 'volatile-ttl', ''])
    expect(() => checkServer.policy(policy)).toThrow(/noeviction/)
  checkServer.policy('noeviction')
})

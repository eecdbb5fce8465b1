import { afterAll, expect, test } from 'vitest'
import { guideCode } from '../../package/guide-blocks.ts'
import { runCode } from '../../package/guide-code.ts'
import { project } from '../../package/guide-project.ts'
import { redis } from './servers.ts'

afterAll(() => project.remove())

test('the code of the guide makes a hub on Redis that publishes', async () => {
  const server = await redis({ settings: { appendonly: 'yes' } })
  const block = guideCode().find(({ page, code }) => page === 'redis.md' && code.includes('redisLog('))
  const code = block?.code.replaceAll('redis://localhost', `redis://127.0.0.1:${server.port}`) ?? ''
  const { hub } = await runCode(code, {})
  expect(await hub.publish('orders/42', { data: 1 })).toMatchObject({ id: expect.any(String) })
  await hub.close()
})

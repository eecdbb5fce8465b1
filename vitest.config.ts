import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { mutantPlugin } from './test/simulation/mutant-plugin.ts'
import { patchesOf } from './test/simulation/mutants.ts'

// Tests run on the sources, so that `npm run test:unit` needs no build. The packed and built form has its own test in
// test/package.
const source = (path: string) => fileURLToPath(new URL(`packages/${path}`, import.meta.url))
const alias = {
  '@rejoin/protocol': source('protocol/src/index.ts'),
  '@rejoin/hub/express': source('hub/src/http/express.ts'),
  '@rejoin/hub/fastify': source('hub/src/http/fastify.ts'),
  '@rejoin/hub/fetch': source('hub/src/http/fetch.ts'),
  '@rejoin/hub/hono': source('hub/src/http/hono.ts'),
  '@rejoin/hub/lmdb': source('hub/src/log/lmdb/log.ts'),
  '@rejoin/hub/memory': source('hub/src/log/memory.ts'),
  '@rejoin/hub/node': source('hub/src/http/node.ts'),
  '@rejoin/hub/redis': source('hub/src/log/redis/log.ts'),
  '@rejoin/hub/testing': source('hub/src/testing/index.ts'),
  '@rejoin/hub': source('hub/src/index.ts'),
  '@rejoin/client/publisher': source('client/src/publisher/publisher.ts'),
  '@rejoin/client': source('client/src/index.ts'),
}
// What is waited for comes in milliseconds; a machine with much else to do may take a thousand times as long.
const expectations = { poll: { timeout: 20_000 } }
const globalSetup = fileURLToPath(new URL('test/fresh-build.ts', import.meta.url))

export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'unit',
          include: ['packages/*/test/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expectations,
        },
      },
      {
        resolve: { alias },
        plugins: [mutantPlugin(patchesOf)],
        test: {
          name: 'whole',
          include: ['test/{package,simulation,faults}/**/*.test.ts'],
          globalSetup,
          expect: expectations,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve: { alias },
        plugins: [mutantPlugin(patchesOf)],
        test: { name: 'simulate', include: ['test/simulation/long-run.ts'] },
      },
      {
        resolve: { alias },
        test: {
          name: 'next',
          include: ['test/services/{runtimes-next,next-example}.ts'],
          globalSetup,
          expect: expectations,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'services',
          include: ['test/{services,browser}/**/*.test.ts'],
          globalSetup,
          expect: expectations,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
})

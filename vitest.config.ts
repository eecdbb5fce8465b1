import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { undoneBy } from './test/faults/mends/mends.ts'
import { LongestFirst } from './test/longest-first.ts'
import { loadedAtOnce } from './test/simulation/loaded-at-once.ts'
import { mutantPlugin, patchPlugin } from './test/simulation/mutant-plugin.ts'
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
  '@rejoin/hub/internal': source('hub/src/internal.ts'),
  '@rejoin/hub/log': source('hub/src/log/index.ts'),
  '@rejoin/hub/lmdb': source('hub/src/log/lmdb/log.ts'),
  '@rejoin/hub/memory': source('hub/src/log/memory/log.ts'),
  '@rejoin/hub/node': source('hub/src/http/node.ts'),
  '@rejoin/hub/operations': source('hub/src/operations/index.ts'),
  '@rejoin/hub/redis': source('hub/src/log/redis/log.ts'),
  '@rejoin/hub/testing': source('hub/src/testing/index.ts'),
  '@rejoin/hub': source('hub/src/index.ts'),
  '@rejoin/client/event-source': source('client/src/event-source.ts'),
  '@rejoin/client/publisher': source('client/src/publisher/publisher.ts'),
  '@rejoin/client/react': source('client/src/react/index.ts'),
  '@rejoin/client/vue': source('client/src/vue/index.ts'),
  '@rejoin/client/redux': source('client/src/redux/index.ts'),
  '@rejoin/client/element': source('client/src/element/index.ts'),
  '@rejoin/client/testing': source('client/src/testing/index.ts'),
  '@rejoin/client': source('client/src/index.ts'),
  '@rejoin/mdns': source('mdns/src/index.ts'),
  '@rejoin/doctor/probe': source('doctor/src/probe.ts'),
  '@rejoin/doctor/proxy-name': source('doctor/src/proxy-name.ts'),
  '@rejoin/doctor': source('doctor/src/index.ts'),
  '@rejoin/storm': source('storm/src/index.ts'),
}
// Tests of the packages that take seconds each: they wait on the clock of the machine, start servers for every case, or play
// thousands of cases. `npm run test:unit` leaves them to `npm test`, so that it can run after every change.
const long = [
  'packages/client/test/{phone-day,random-faults,slow-connection}.test.ts',
  'packages/client/test/connection/property.test.ts',
  'packages/hub/test/http/adapters/{express,fastify,fetch,hono,node,other-frameworks}.test.ts',
  'packages/hub/test/http/{data-texts,incoming-bodies,unread-answers}.test.ts',
  'packages/hub/test/hub/lost-log.test.ts',
  'packages/hub/test/hub/read/ends.test.ts',
  'packages/hub/test/hub/readers/{lifecycle,rapid-returns}.test.ts',
  'packages/hub/test/log/lmdb/{log,files/backup,files/copies,files/damage,files/restart}.test.ts',
  'packages/hub/test/log/switch-ids.test.ts',
  'packages/mdns/test/{hostile-text,service-type,slow-readers}.test.ts',
  'packages/protocol/test/{codecs,cursor,id-format,names,parse-fuzz}.test.ts',
  'packages/rejoin/test/access/{changed-keys,jwt}.test.ts',
  'packages/rejoin/test/admin/admin.test.ts',
  'packages/rejoin/test/chaos/chaos.test.ts',
  'packages/rejoin/test/cli/commands/{admin,completion,doctor,tail,unreachable}.test.ts',
  'packages/rejoin/test/cli/program.test.ts',
  'packages/rejoin/test/monitoring/live-figures.test.ts',
  'packages/rejoin/test/doctor/*.test.ts',
  'packages/rejoin/test/http/tls.test.ts',
  'packages/rejoin/test/limits/{first-requests,limits,reader-room}.test.ts',
  'packages/rejoin/test/monitoring/metrics.test.ts',
  'packages/rejoin/test/storm/storm.test.ts',
]
// Tests that replace modules of ours or load them again, so that other files would get the replacement; those that measure
// the memory of their process; and the one that gives every object a key.
const unsharable = [
  'packages/client/test/{degradation,misbehaviour}.test.ts',
  'packages/hub/test/http/inherited-keys.test.ts',
  'packages/rejoin/test/http/openapi-routes.test.ts',
]
const longUnsharable = [
  'packages/hub/test/http/rushes.test.ts',
  'packages/hub/test/log/work-per-turn.test.ts',
  'packages/hub/test/log/lmdb/commit/window.test.ts',
]
// Tests of faults and services that hold something to a time or to a measure of memory. `npm test` runs them one after another
// and nothing beside them, because a neighbour would take their processor. All others run side by side.
const servicesAlone = [
  // An event has to follow an announcement of the network within half a second, 95 times of 100.
  'test/services/mdns/cuts.test.ts',
  // The median of all returns has to be at most 250 ms over the wait that the hub asked for.
  'test/browser/client-cycles.test.ts',
  // A reader has to give way to long polls within 20 s of the time of its page.
  'test/browser/client-proxies.test.ts',
  // Half of all returns have to be within 1.5 s of the network.
  'test/browser/returns.test.ts',
  // A page from the cache of the browser has to read again within 300 ms.
  'test/browser/page-cache.test.ts',
  // The playground has to show its first number within a second, and its two lanes have to keep up with each other. What else there
  // is to see of it is in playground-page.test.ts, which runs beside others.
  'test/browser/{playground,playground-start}.test.ts',
  // Another tab has to read within a second after the tab that reads is gone.
  'test/browser/tabs.test.ts',
  // Proxies have to notice within 2.5 s that a hub stops, with 300 readers on one machine.
  'test/services/proxies/rolling-restart.test.ts',
]
const faultsAlone = [
  // The hub has to stay below a bound of memory, and has to answer in time, while it is attacked.
  'test/faults/hostile/hostile.test.ts',
]
// Tests of the bindings make a page of their process.
const frameworks = ['packages/client/test/{element,react,react-query,vue}/**/*.test.ts']
const page = fileURLToPath(new URL('packages/client/test/support/page.ts', import.meta.url))
// The oldest frameworks that the client's bindings support; all other tests have the newest.
const framework = (path: string) => fileURLToPath(new URL(`test/frameworks/${path}`, import.meta.url))
const older = {
  'react-dom': framework('react-18/node_modules/react-dom'),
  react: framework('react-18/node_modules/react'),
  vue: framework('vue-3.4/node_modules/vue'),
}
// `npm run faults -- mends` brings mended faults back, one at a time, to see that their tests fail.
const undone = [patchPlugin(undoneBy(process.env.UNDONE_MEND))]
// What is waited for comes in milliseconds; a machine with much else to do may take a thousand times as long.
const expectations = { poll: { timeout: 20_000, interval: 10 } }
const globalSetup = fileURLToPath(new URL('test/fresh-build.ts', import.meta.url))

export default defineConfig({
  test: {
    // Without this, Vitest leaves one core to itself, which on two cores is half of them. More files than cores at a time would take
    // the processor from tests against the clock, and tests that publish at a steady pace would take more of it in all.
    maxWorkers: '100%',
    sequence: { sequencer: LongestFirst },
    projects: [
      ...[
        {
          name: 'unit',
          include: ['packages/*/test/**/*.test.ts'],
          exclude: [...unsharable, ...frameworks, ...long, ...longUnsharable],
          isolate: false,
        },
        { name: 'long', include: long, exclude: [], isolate: false },
        { name: 'unit-alone', include: unsharable, exclude: [], isolate: true },
        { name: 'long-alone', include: longUnsharable, exclude: [], isolate: true },
      ].map(({ name, include, exclude, isolate }) => ({
        resolve: { alias },
        plugins: undone,
        test: {
          name,
          include,
          exclude,
          // Loading our code anew for each file takes longer than all the tests.
          isolate,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expectations,
        },
      })),
      ...[
        { name: 'frameworks', include: frameworks, alias, env: { REACT: '19', VUE: '3.5' } },
        {
          name: 'older-frameworks',
          include: ['packages/client/test/{react,vue}/**/*.test.ts'],
          alias: { ...alias, ...older },
          env: { REACT: '18', VUE: '3.4' },
        },
      ].map(({ name, include, alias, env }) => ({
        resolve: { alias },
        test: {
          name,
          env,
          include,
          isolate: false,
          setupFiles: [page],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expectations,
        },
      })),
      {
        test: {
          name: 'examples',
          include: ['examples/*/*.test.tsx'],
          // Examples use the packages as an application does, built.
          globalSetup,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: expectations,
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          globalSetup,
          expect: expectations,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve: { alias },
        plugins: [mutantPlugin(patchesOf), loadedAtOnce()],
        test: {
          name: 'simulation',
          include: ['test/simulation/**/*.test.ts'],
          // Each history makes hubs anew. With the little room that Node gives to young objects, a sixth of the time goes to collect them.
          execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        resolve: { alias },
        plugins: [mutantPlugin(patchesOf), loadedAtOnce()],
        test: { name: 'simulation-run', include: ['test/simulation/long-run.ts'] },
      },
      {
        resolve: { alias },
        test: {
          name: 'next',
          include: ['test/services/runtimes/next.ts'],
          globalSetup,
          expect: expectations,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      ...[
        { name: 'faults', include: ['test/{faults,support}/**/*.test.ts'], exclude: faultsAlone, limitMs: 120_000 },
        { name: 'faults-alone', include: faultsAlone, exclude: [], limitMs: 120_000 },
        {
          name: 'services',
          include: ['test/{services,browser}/**/*.test.ts'],
          exclude: servicesAlone,
          limitMs: 60_000,
        },
        { name: 'services-alone', include: servicesAlone, exclude: [], limitMs: 60_000 },
      ].map(({ name, include, exclude, limitMs }) => ({
        resolve: { alias },
        plugins: undone,
        test: {
          name,
          include,
          exclude,
          // The files that a worker runs share our code, and a Chromium.
          isolate: false,
          globalSetup,
          expect: expectations,
          testTimeout: limitMs,
          hookTimeout: limitMs,
        },
      })),
    ],
  },
})

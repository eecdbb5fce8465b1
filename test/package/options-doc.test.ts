import { describe, expect, test } from 'vitest'
import { readText } from '../support/repository.ts'

/** The names in the first column of the table that follows a heading. */
function documented(heading: string, file = 'docs/reference/hub.md'): string[] {
  const page = readText(file)
  const section = page.slice(page.indexOf(heading))
  const table = section.slice(section.indexOf('|---'), section.indexOf('\n\n', section.indexOf('|---')))
  return [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name ?? '').sort()
}

/** The optional and required members of interfaces, by their declarations. */
function declared(...interfaces: [file: string, name: string][]): string[] {
  return interfaces
    .flatMap(([file, name]) => {
      const body = new RegExp(`export interface ${name}[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(readText(file))?.[1] ?? ''
      return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, member]) => member ?? '')
    })
    .sort()
}

describe('every option has its line in docs/reference/hub.md, and no other has', () => {
  const hub = (file: string) => `packages/hub/src/${file}`
  test('of createHub', () => {
    const options = declared(
      [hub('hub/hub-options.ts'), 'HubOptions'],
      [hub('hub/readers/retry.ts'), 'RetryOptions'],
      [hub('hub/read/opening.ts'), 'ReplayLimits'],
      [hub('hub/read/snapshot.ts'), 'SnapshotOptions'],
    )
    expect(options.length).toBeGreaterThan(8)
    expect(documented('# `createHub')).toEqual(options)
  })

  test('of nodeHandler', () => {
    const options = ['AdapterOptions', 'BasePathOptions', 'BodyOptions', 'ProxyOptions']
    expect(documented('## `nodeHandler')).toEqual(
      declared(...options.map((name): [string, string] => [hub('http/options.ts'), name])),
    )
  })

  test('of memoryLog', () => {
    expect(documented('## `memoryLog')).toEqual(declared([hub('log/memory/log.ts'), 'MemoryLogOptions']))
  })

  test('of createTestHub, in docs/reference/testing.md', () => {
    const own = declared([hub('testing/test-hub.ts'), 'TestHubOptions'])
    expect(own).toEqual(['now', 'seed'])
    const page = 'docs/reference/testing.md'
    const taken = ['authorize', 'basePath', 'window']
    expect(documented('## `createTestHub', page)).toEqual([...own, ...taken].sort())
  })

  test('of lmdbLog', () => {
    expect(documented('## `lmdbLog')).toEqual(declared([hub('log/lmdb/log.ts'), 'LmdbLogOptions']))
  })

  test('of redisLog', () => {
    expect(documented('## `redisLog')).toEqual(declared([hub('log/redis/options.ts'), 'RedisLogOptions']))
  })
})

test.each<[heading: string, ...interfaces: [file: string, name: string][]]>([
  ['### Window', ['hub/read/channel-window.ts', 'ChannelWindow']],
  ['### Connection', ['hub/hub.ts', 'Connection'], ['hub/observation.ts', 'ReaderFacts']],
])('%s: every field has its line in docs/reference/hub.md, and no other has', (heading, ...interfaces) => {
  const fields = declared(...interfaces.map(([file, name]): [string, string] => [`packages/hub/src/${file}`, name]))
  expect(fields.length).toBeGreaterThan(7)
  const section = readText('docs/reference/hub.md').split(`${heading}\n`)[1]?.split('\n#')[0] ?? ''
  const columns = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, column]) => column)
  expect([...columns.join().matchAll(/`(\w+)`/g)].map(([, name]) => name).sort()).toEqual(fields)
})

test('every member of a test hub has its line in docs/reference/testing.md, and no other has', () => {
  const body = /export interface TestHub<[^{]*\{\n([\s\S]*?)\n\}/.exec(
    readText('packages/hub/src/testing/test-hub.ts'),
  )?.[1]
  const members = [...(body ?? '').matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(([, member]) => member)
  expect(members.length).toBeGreaterThan(12)
  const page = readText('docs/reference/testing.md')
  const table = page.slice(page.indexOf('| member |'), page.indexOf('## `attachTo'))
  expect([...table.matchAll(/^\| `(\w+)/gm)].map(([, name]) => name).sort()).toEqual(members.sort())
})

test('every path of --chaos has its line in docs/reference/testing.md, and no other has', () => {
  const routes = readText('packages/rejoin/src/chaos/chaos-routes.ts')
  const verbs = [...routes.matchAll(/post\('(\w+)'/g)].map(([, verb]) => `POST /chaos/${verb}`)
  expect(verbs.length).toBeGreaterThan(5)
  const page = readText('docs/reference/testing.md')
  const documented = [...page.matchAll(/^\| `((?:GET|POST) [^`]+)` \|/gm)].map(([, path]) => path)
  expect(documented.sort()).toEqual(['GET /chaos', ...verbs].sort())
})

test('every option of createMdns has its line in docs/reference/mdns.md, and no other has', () => {
  const options = declared(['packages/mdns/src/mdns.ts', 'MdnsOptions'])
  expect(options.length).toBeGreaterThan(8)
  expect(documented('# `createMdns', 'docs/reference/mdns.md')).toEqual(options)
})

test('every kind of observation has its line in docs/reference/hub.md, and no other has', () => {
  const kinds = declared(['packages/hub/src/hub/observation.ts', 'HubObservations'])
  expect(kinds.length).toBeGreaterThan(8)
  expect(documented('## What the hub tells')).toEqual(kinds)
})

test('every member of a log is named in docs/guides/write-a-log.md, and no other is', () => {
  const contract = readText('packages/hub/src/log/contract.ts')
  const body = /export interface Log \{\n([\s\S]*?)\n\}/.exec(contract)?.[1] ?? ''
  const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:]/gm)].map(([, member]) => member)
  expect(members.length).toBeGreaterThan(10)
  const page = readText('docs/guides/write-a-log.md')
  const rows = [...page.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm)].map(([, names]) => names)
  const named = [...rows.join().matchAll(/\w+/g)].map(([name]) => name)
  expect(named.sort()).toEqual(members.sort())
})

test('every option of connect has its line in docs/reference/client.md, and no other has', () => {
  const client = (file: string) => `packages/client/src/${file}`
  const options = declared(
    [client('options.ts'), 'ConnectOptions'],
    [client('options.ts'), 'ReadOptions'],
    [client('request.ts'), 'RequestOptions'],
  )
  expect(options.length).toBeGreaterThan(12)
  expect(documented('# `connect', 'docs/reference/client.md')).toEqual(options)
})

test('every option of a rule for tokens has its line in docs/guides/access.md, and no other has', () => {
  const page = readText('docs/guides/access.md')
  const section = page.slice(page.indexOf('### Which key?'), page.indexOf('## API keys'))
  const names = [...section.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name ?? '').sort()
  expect(names).toEqual(declared(['packages/rejoin/src/access/rules.ts', 'JwtRule']))
})

import { describe, expect, test } from 'vitest'
import { readText } from './repository.ts'

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
      return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member]) => member ?? '')
    })
    .sort()
}

describe('every option has its line in docs/reference/hub.md, and no other has', () => {
  const hub = (file: string) => `packages/hub/src/${file}`
  test('of createHub', () => {
    const options = declared(
      [hub('hub/hub-options.ts'), 'HubOptions'],
      [hub('hub/retry.ts'), 'RetryOptions'],
      [hub('hub/opening.ts'), 'ReplayLimits'],
      [hub('hub/snapshot.ts'), 'SnapshotOptions'],
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
    expect(documented('## `memoryLog')).toEqual(declared([hub('log/memory.ts'), 'MemoryLogOptions']))
  })

  test('of lmdbLog', () => {
    expect(documented('## `lmdbLog')).toEqual(declared([hub('log/lmdb/log.ts'), 'LmdbLogOptions']))
  })

  test('of redisLog', () => {
    expect(documented('## `redisLog')).toEqual(declared([hub('log/redis/options.ts'), 'RedisLogOptions']))
  })
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
  expect(names).toEqual(declared(['packages/server/src/access/rules.ts', 'JwtRule']))
})

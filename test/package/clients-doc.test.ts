import { expect, test } from 'vitest'
import { readJson, readText } from '../support/repository.ts'

const tried = ['eventsource', 'eventsource-client', 'undici', '@microsoft/fetch-event-source']

test.each(tried)('docs/reference/clients.md names the version of %s that the tests run', (name) => {
  const { version } = readJson<{ version: string }>(`node_modules/${name}/package.json`)
  const row = readText('docs/reference/clients.md')
    .split('\n')
    .find((line) => line.startsWith('|') && line.includes(`[\`${name}\`]`))
  expect(row).toContain(`| ${version} |`)
})

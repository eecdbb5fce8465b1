import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../../support/program.ts'

/** What a reader of curl prints until it has printed `events` events; then it is ended. */
const readUntil = `
read_until() { # <events> <curl arguments>
  count=$1; shift
  exec 3< <(exec curl -sN "$@"); reader=$!
  while IFS= read -r line <&3; do
    echo "$line"
    case $line in 'data: {"msg"'*) count=$((count - 1)) ;; esac
    if [ $count = 0 ]; then break; fi
  done
  kill $reader
}`

test('scripts that know one stream run as they were written: publish ten, return with the fifth id, get six to ten', async () => {
  const url = await oneStream()
  const printed = await bash(`${readUntil}
    for n in 1 2 3 4 5 6 7 8 9 10; do
      curl -s -X POST ${url}/publish -H 'Content-Type: application/json' -d "{\\"msg\\":$n}" | sed 's/.*"id":"\\([^"]*\\)".*/published \\1/'
    done > published
    fifth=$(sed -n 5p published | cut -d' ' -f2)
    read_until 5 -H "Last-Event-ID: $fifth" ${url}/stream`)
  expect([...printed.matchAll(/^data: \{"msg":(\d+)\}/gm)].map(([, n]) => Number(n))).toEqual([6, 7, 8, 9, 10])
  expect(printed).not.toContain('sync-required')
})

test('a cursor of another server is answered 200, told first, and the stream goes on', async () => {
  const url = await oneStream()
  const printed = await bash(`${readUntil}
    (sleep 1; curl -s -X POST ${url}/publish -d '{"msg":1}' > /dev/null) &
    read_until 1 -i -H 'Last-Event-ID: evt_1715892000_001' ${url}/stream`)
  expect(printed).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  expect(printed.toLowerCase()).toContain('x-accel-buffering: no')
  expect(printed.indexOf('event: sync-required')).toBeGreaterThan(0)
  expect(printed.indexOf('data: {"msg":1}')).toBeGreaterThan(printed.indexOf('event: sync-required'))
})

async function oneStream(): Promise<string> {
  let url = ''
  const server = await startProgram({
    port: 0,
    env: { REJOIN_LOG: 'memory', REJOIN_DEFAULT_CHANNEL: 'main' },
    onLine: (line) => {
      if (line.includes('"server_ready"')) url = JSON.parse(line).url
    },
  })
  onTestFinished(() => server.stop().then(() => undefined))
  return url
}

async function bash(script: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-c', `cd "$(mktemp -d)"; ${script}`], { timeout: 60_000 })
  return stdout
}

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { program } from '../../support/paths.ts'
import { startProgram } from '../../support/program.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

test('rejoin backup copies the log of a hub that goes on publishing, and readers of the restored log are told', async () => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const place = (name: string) => join(folder, name)
  const hub = await serve(place('log'))
  const load = keepPublishing(`${hub.url}/publish/orders`)
  await load.has(100)
  const before = load.ids.length
  await rejoin('backup', place('backup'), '--data', place('log'))
  await load.has(load.ids.length + 100)
  await load.stop()
  await hub.stop()

  await rejoin('restore', place('backup'), '--data', place('restored'))
  const { url } = await serve(place('restored'))
  const held = await poll(`${url}/poll/orders?lastEventId=earliest`)
  const numbers = held.filter(({ type }) => type === 'message').map(({ data }) => Number(data))
  expect(numbers).toEqual(numbers.map((_, index) => index))
  expect(numbers.length).toBeGreaterThanOrEqual(before)
  expect(numbers.length).toBeLessThan(load.ids.length)
  for (const [id, owed] of [
    [load.ids[0], numbers.slice(1)],
    [load.ids[numbers.length - 1], []],
    [load.ids.at(-1), []],
  ] as const) {
    const [hello, ...frames] = await poll(`${url}/poll/orders?waitMs=0&lastEventId=${id}`)
    expect(JSON.parse(hello?.data as string)).toMatchObject({ resumed: owed.length > 0 })
    expect(frames.slice(0, -1).map(({ data }) => Number(data))).toEqual(owed)
    expect(frames.at(-1)?.type).toBe('sync-required')
    expect(JSON.parse(frames.at(-1)?.data as string)).toMatchObject({ reason: 'epoch' })
  }
})

async function serve(directory: string) {
  let url = ''
  const hub = await startProgram({
    directory,
    port: 0,
    onLine(line) {
      if (line.includes('"server_ready"')) url = (JSON.parse(line) as { url: string }).url
    },
  })
  onTestFinished(() => hub.stop().then(() => undefined))
  return { url, stop: () => hub.stop() }
}

/** Publishes 0, 1, 2 … one after the other. */
function keepPublishing(url: string) {
  const ids: string[] = []
  let isStopped = false
  let told: (() => void) | undefined
  const done = (async () => {
    while (!isStopped) {
      const response = await fetch(url, {
        method: 'POST',
        body: String(ids.length),
        headers: { 'Content-Type': 'application/json' },
      })
      ids.push(((await response.json()) as { id: string }).id)
      told?.()
    }
  })()
  return {
    ids,
    async has(count: number) {
      while (ids.length < count) {
        await new Promise<void>((resolve) => {
          told = resolve
        })
      }
    },
    stop() {
      isStopped = true
      return done
    },
  }
}

async function poll(url: string) {
  const response = await fetch(url)
  return ((await response.json()) as { events: { type: string; data: string }[] }).events
}

function rejoin(...args: string[]) {
  return promisify(execFile)(process.execPath, [program, ...args])
}

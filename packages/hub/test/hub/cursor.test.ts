import { createHub, type Hub, type LogSource } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts'

describe.each<[string, () => LogSource]>([
  ['memory', () => memoryLog()],
  ['embedded', () => lmdbLog(folderOfTest())],
])('the cursor of a hub on the %s log', (_name, logOf) => {
  async function open(): Promise<Hub> {
    const hub = await createHub({ log: logOf() })
    onTestFinished(() => hub.close())
    return hub
  }

  test('of a log without events leads to the first event', async () => {
    const hub = await open()
    const cursor = await hub.cursor('orders/1')
    await hub.publish('orders/1', { data: 1 })
    expect(await follow(hub, cursor, 1)).toEqual({ resumed: true, data: ['1'] })
  })

  test('leads to everything that is published after it, and to nothing before it', async () => {
    const hub = await open()
    await hub.publish('orders/1', { data: 1 })
    const cursor = await hub.cursor(['orders/1', 'orders/*'])
    await hub.publish('orders/1', { data: 2 })
    await hub.publish('orders/1', { data: 3 })
    expect(await follow(hub, cursor, 2)).toEqual({ resumed: true, data: ['2', '3'] })
  })

  test('is rejected for a name that no stream could have', async () => {
    const hub = await open()
    await expect(hub.cursor('orders//1')).rejects.toMatchObject({ code: 'invalid-channel' })
    await expect(hub.cursor([])).rejects.toMatchObject({ name: 'RejoinError' })
  })
})

async function follow(hub: Hub, from: string, events: number): Promise<{ resumed: boolean; data: string[] }> {
  const data: string[] = []
  let resumed = false
  for await (const frame of hub.stream('orders/1', { from })) {
    if (frame.type === 'hello') resumed = JSON.parse(frame.data).resumed
    else data.push(frame.data)
    if (data.length === events) break
  }
  return { resumed, data }
}

function folderOfTest(): string {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  return folder
}

import { describe, expect, test } from 'vitest'
import { checkRoom, roomHere } from '../../../src/cli/commands/storm-room.ts'

describe('the room of this machine', () => {
  test('rejects a storm with more readers than files or ports, and says how to get more', () => {
    expect(() => checkRoom(5000, { files: 896, ports: 28_232 })).toThrow(/may open 896\. .*ulimit -n 5128/)
    expect(() => checkRoom(30_000, { files: 60_000, ports: 28_232 })).toThrow(/28232 .*ip_local_port_range/)
    expect(() => checkRoom(500, { files: 896, ports: 28_232 })).not.toThrow()
    expect(() => checkRoom(500_000, { files: undefined, ports: undefined })).not.toThrow()
  })

  test('is unknown where the system does not tell', () => {
    expect(roomHere('/nowhere').ports).toBeUndefined()
  })
})

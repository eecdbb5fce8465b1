import { expect, onTestFinished, test, vi } from 'vitest'
import { keepHeapSmall } from '../../src/cli/small-heap.ts'

test('a small heap may grow by 200 % before it is collected, and a large one by 50 %', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let megabytes = 20
  const flags: string[] = []
  keepHeapSmall({
    getHeapStatistics: () => ({ total_heap_size: (megabytes - 10) * 1024 * 1024, external_memory: 10 * 1024 * 1024 }),
    setFlagsFromString: (flag) => flags.push(flag),
  })
  for (megabytes of [100, 129, 300, 50]) vi.advanceTimersByTime(1000)
  expect(flags).toEqual(['--heap-growing-percent=200', '--heap-growing-percent=50', '--heap-growing-percent=200'])
})

import { callHandler } from '../handler-set.ts'

/**
 * Runs a task before the next frame is painted, and only once however often it is requested until then. All tasks share
 * one callback, so that a framework renders once for all of them.
 *
 * A hidden page paints no frames, so a timer runs the tasks after a second. Where nothing is painted at all, as in
 * Node, the tasks run after 16 ms, the length of a frame.
 */
export function nextFrame(task: () => void): void {
  const { requestAnimationFrame } = globalThis as Partial<typeof globalThis>
  tasks.add(task)
  timer ??= setTimeout(runTasks, requestAnimationFrame ? 1000 : 16)
  if (isAwaited || !requestAnimationFrame) return
  isAwaited = true
  requestAnimationFrame(() => {
    isAwaited = false
    runTasks()
  })
}

/** Whether a task still waits for its frame. */
export function isFrameDue(): boolean {
  return tasks.size > 0
}

const tasks = new Set<() => void>()
let timer: unknown
/** Whether a frame has been requested. A hidden page gets the frame only when it is seen again. */
let isAwaited = false

function runTasks(): void {
  clearTimeout(timer as number)
  timer = undefined
  const due = [...tasks]
  tasks.clear()
  for (const task of due) void callHandler(task, undefined)
}

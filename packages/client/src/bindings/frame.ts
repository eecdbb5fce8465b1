import { callHandler } from '../handler-set.ts'

/**
 * Runs a task before the next frame is painted, once however often it is asked for until then. All tasks share one
 * callback, so that a framework renders once for all of them.
 *
 * A page that nobody sees paints no frame, so a timer runs the tasks after a second there. Where nothing is painted at all,
 * as in Node, they run after as long as a frame takes.
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

/** Whether there is something to show that is not shown yet. */
export function isFrameDue(): boolean {
  return tasks.size > 0
}

const tasks = new Set<() => void>()
let timer: unknown
/** Whether a frame is asked for, which a hidden page does not get until it is seen. */
let isAwaited = false

function runTasks(): void {
  clearTimeout(timer as number)
  timer = undefined
  const due = [...tasks]
  tasks.clear()
  for (const task of due) void callHandler(task, undefined)
}

import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ, the unit of /proc/<pid>/stat, is 100 on every Linux that Node runs on.
const msPerTick = 10

/** Processor time these processes have used, in user and kernel mode, in milliseconds. */
export function cpuMs(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    const [, , , , , , , , , , , user, system] = statOf(pid)
    return (Number(user) + Number(system)) * msPerTick
  })
}

/** Time a core has spent on anything, in milliseconds. What the hypervisor took is part of it. */
export function coreMs(core: number): number {
  const line = new RegExp(`^cpu${core} (.+)$`, 'm').exec(readFileSync('/proc/stat', 'utf8'))
  const [user, nice, system, , , irq, softirq, steal] = line![1]!.split(' ').map(Number)
  return (user! + nice! + system! + irq! + softirq! + steal!) * msPerTick
}

/** Memory these processes hold, in bytes. What the kernel holds for their sockets is not in it. */
export function rssBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Number(line![1]) * 1024
  })
}

export function childrenOf(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => parentOf(pid) === parent)
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(statOf(pid)[1])
  } catch {
    // It ended between the listing and this look.
    return undefined
  }
}

/** The fields behind the command's name, which may hold spaces and brackets itself: state, parent, … */
function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function sum(pids: readonly number[], measure: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + measure(pid), 0)
}

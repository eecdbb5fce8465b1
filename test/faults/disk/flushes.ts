/**
 * Reads what strace has written down of a hub, and finds the answers to publishes that went out before what they answer for
 * was on the disk. Publishes must have been made one after the other.
 *
 * LMDB writes the pages of a commit, has them flushed, and then writes the page that makes them count, through a descriptor
 * of which every write is flushed before it returns.
 */
export function judgeFlushes(trace: string): FlushVerdict {
  const calls = readCalls(trace)
  const through = new Set<string>()
  const early: string[] = []
  let answers = 0
  let state: 'asked' | 'written' | 'flushed' | 'rooted' = 'asked'
  let isFlushing = false
  for (const { name, phase, args, result } of calls) {
    const isData = args.includes('data.mdb>')
    if (name === 'openat' && phase === 'end' && /O_D?SYNC/.test(args) && args.includes('data.mdb')) {
      through.add(/^\d+/.exec(result)?.[0] ?? '')
    } else if ((name === 'read' || name === 'recvfrom') && args.includes('"POST /publish')) {
      state = 'asked'
    } else if (isData && phase === 'begin' && name === 'fdatasync') {
      isFlushing = state === 'written'
    } else if (isData && phase === 'end' && /^p?write/.test(name) && !result.startsWith('-')) {
      if (!through.has(/^\d+/.exec(args)?.[0] ?? '')) state = 'written'
      else if (state === 'flushed') state = 'rooted'
    } else if (isData && phase === 'end' && name === 'fdatasync' && result.startsWith('0') && isFlushing) {
      state = 'flushed'
    } else if (phase === 'begin' && /^(write|writev|sendto|sendmsg)$/.test(name) && args.includes('HTTP/1.1 201')) {
      answers += 1
      if (state !== 'rooted') early.push(`answer ${answers} went out when its events were only ${state}`)
      state = 'asked'
    }
  }
  return { answers, early }
}

export interface FlushVerdict {
  readonly answers: number
  readonly early: readonly string[]
}

/** A call that began and ended at once has both phases one after the other; of one that was interrupted, others stand between. */
interface Call {
  readonly name: string
  readonly phase: 'begin' | 'end'
  readonly args: string
  /** Empty at the beginning. */
  readonly result: string
}

function readCalls(trace: string): Call[] {
  const unfinished = new Map<string, { name: string; args: string }>()
  return trace.split('\n').flatMap((line): Call[] => {
    const resumed = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$/.exec(line)
    if (resumed) {
      const [, thread = '', name = '', args = '', result = ''] = resumed
      const begun = unfinished.get(thread)
      unfinished.delete(thread)
      return [{ name, phase: 'end', args: (begun?.args ?? '') + args, result }]
    }
    const begun = /^(\d+) +(\w+)\((.*?) ?<unfinished \.\.\.>$/.exec(line)
    if (begun) {
      const [, thread = '', name = '', args = ''] = begun
      unfinished.set(thread, { name, args })
      return [{ name, phase: 'begin', args, result: '' }]
    }
    const whole = /^\d+ +(\w+)\((.*)\) += (.*)$/.exec(line)
    if (!whole) return []
    const [, name = '', args = '', result = ''] = whole
    return [
      { name, phase: 'begin', args, result: '' },
      { name, phase: 'end', args, result },
    ]
  })
}

/** The command under which a hub is run for {@link judgeFlushes}. */
export function tracedTo(file: string): string[] {
  const calls = 'openat,read,recvfrom,write,writev,sendto,sendmsg,pwrite64,pwritev,fdatasync,fsync,msync'
  return ['strace', '-f', '-y', '-s', '80', '-e', `trace=${calls}`, '-o', file]
}

import { createRandom } from '@rejoin/hub/testing'
import type { Cut, Link } from '../../support/fault-proxy/fault-proxy.ts'
import { type FieldOptions, openField } from '../crowds/field.ts'

/** Cuts the connections of all readers at random bytes, each so many times, one after the other for each reader. */
export async function runCuts(options: CutsOptions): Promise<void> {
  const { history, seed, readers, cuts, onProgress } = options
  history.write({ kind: 'run', name: 'cuts', seed, inputs: { readers, cuts } })
  const plans = Array.from({ length: readers }, (_, index) => planCuts(options, index))
  let made = 0
  let finished: () => void
  const allMade = new Promise<void>((resolve) => {
    finished = resolve
  })

  function makeNext(link: Link, { who, index }: { who: string; index: number }): void {
    const plan = plans[index]?.shift()
    if (!plan) return
    const { at, how, direction } = plan
    let isMade = false
    void link.cutAt(at, how, direction).then(() => {
      isMade = true
      history.write({ kind: 'fault', what: `${how} after ${at} bytes ${direction}`, readers: [who] })
      // The network is whole again at once; it is for the reader to notice that its connection is not.
      history.write({ kind: 'heal', readers: [who] })
      made += 1
      onProgress?.(made)
      if (made === cuts) finished()
    })
    // A reader may give up a connection by itself, on a machine so busy that heartbeats are late.
    void link.closed.then(() => {
      if (!isMade) plans[index]?.unshift(plan)
    })
  }

  const field = await openField({ ...options, onLink: makeNext })
  let timer: NodeJS.Timeout | undefined
  // A cut that never comes about shows in the number of faults; the run ends all the same.
  const tooLong = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, options.limitMs)
  })
  await Promise.race([allMade, tooLong])
  clearTimeout(timer)
  await field.finish()
}

export interface CutsOptions extends Omit<FieldOptions, 'onLink'> {
  /** Of all readers together. */
  readonly cuts: number
  /** The most bytes a connection lives for. */
  readonly maxBytes: number
  /**
   * Whether connections may hang before the hub has greeted. A client that does not know the heartbeat yet waits half a
   * minute then.
   */
  readonly earlyHangs: boolean
  /** After this the run ends, whatever is missing. */
  readonly limitMs: number
  onProgress?(made: number): void
}

interface Plan {
  readonly at: number
  readonly how: Cut
  readonly direction: 'down' | 'up'
}

/** The kinds in turn, shuffled. */
function planCuts({ seed, readers, cuts, maxBytes, earlyHangs }: CutsOptions, index: number): Plan[] {
  const random = createRandom(seed * 1000 + index)
  const count = Math.floor(cuts / readers) + (index < cuts % readers ? 1 : 0)
  const kinds: Cut[] = ['reset', 'fin', 'half-open']
  const plans = Array.from({ length: count }, (_, cut): Plan => {
    const how = kinds[cut % kinds.length] as Cut
    const lasts = how === 'half-open' && !earlyHangs
    // One in ten in the request, and of the others one in four in the head of the answer or in `hello`.
    if (!lasts && random() < 0.1) return { how, direction: 'up', at: 1 + Math.floor(random() * requestBytes) }
    const most = !lasts && random() < 0.25 ? greetingBytes : maxBytes
    const least = lasts ? greetingBytes : 1
    return { how, direction: 'down', at: least + Math.floor(random() * (most - least)) }
  })
  return plans
    .map((plan) => ({ plan, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ plan }) => plan)
}

// Less than any request has, more than the head of any answer and its `hello` have.
const requestBytes = 60
const greetingBytes = 800

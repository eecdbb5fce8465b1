import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Lets go of everything that nothing refers to any more. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

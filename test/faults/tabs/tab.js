// One tab of a browser, as a thread: it shares channels with the others, and nothing else. The thread that made it keeps the
// locks, as the browser does, so that a tab that is killed lets go of them.
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '@rejoin/client'

const { url, from, name } = workerData
const numbers = []
const gaps = []
const waiting = new Map()
let requests = 0

const locks = {
  request(key, { signal, steal, ifAvailable }, run) {
    const id = ++requests
    return new Promise((resolve, reject) => {
      waiting.set(id, {
        async grant(lock) {
          signal?.removeEventListener('abort', abort)
          resolve(await run(lock))
          waiting.delete(id)
          tell({ free: id })
        },
        steal() {
          waiting.delete(id)
          reject(new Error('stolen'))
        },
      })
      const abort = () => {
        waiting.delete(id)
        tell({ free: id })
        reject(signal.reason)
      }
      signal?.addEventListener('abort', abort)
      tell({ lock: id, key, steal, ifAvailable })
    })
  },
}
Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true })

parentPort.on('message', ({ granted, refused, stolen, hangMs, ask, stick, close }) => {
  // One that was given up meanwhile has been freed, too.
  if (granted) void waiting.get(granted)?.grant({})
  if (refused) void waiting.get(refused)?.grant(null)
  if (stolen) waiting.get(stolen)?.steal()
  // Nothing runs in a tab that hangs: no message, no answer, no timer.
  if (hangMs) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs)
  if (ask) tell({ numbers, gaps, state: stream.state })
  if (stick) void loopForEver()
  if (close) stream.close()
})

const stream = connect(url, { shareAcrossTabs: name, from, retryMs: 20, maxRetryMs: 200, transports: ['fetch'] })
stream.on('message', ({ data }) => void numbers.push(data))
stream.onSync((gap) => void gaps.push(gap.reason))
stream.onState(({ state }) => tell({ state }))

/** Never asks for a second event. */
async function loopForEver() {
  for await (const _ of stream) await new Promise(() => {})
}

function tell(message) {
  parentPort.postMessage(message)
}

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
  request(key, { signal }, run) {
    const id = ++requests
    return new Promise((resolve, reject) => {
      waiting.set(id, async () => {
        waiting.delete(id)
        resolve(await run())
        tell({ free: id })
      })
      signal.addEventListener('abort', () => {
        if (!waiting.delete(id)) return
        tell({ free: id })
        reject(signal.reason)
      })
      tell({ lock: id, key })
    })
  },
}
Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true })

parentPort.on('message', ({ granted, hangMs, ask, close }) => {
  // One that was given up meanwhile has been freed, too.
  if (granted) void waiting.get(granted)?.()
  // Nothing runs in a tab that hangs: no message, no answer, no timer.
  if (hangMs) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, hangMs)
  if (ask) tell({ numbers, gaps, state: stream.state })
  if (close) stream.close()
})

const stream = connect(url, { shareAcrossTabs: name, from, retryMs: 20, maxRetryMs: 200, transports: ['fetch'] })
stream.on('message', ({ data }) => void numbers.push(data))
stream.onSync((gap) => void gaps.push(gap.reason))
stream.onState(({ state }) => tell({ state }))

function tell(message) {
  parentPort.postMessage(message)
}

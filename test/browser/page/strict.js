import { EventSource as Strict } from '/client/event-source.js'
import { open, rules } from './event-source-rules.js'

globalThis.playRule = (url, index, isNative) =>
  (rules[index].play ?? open)({ EventSource: isNative ? EventSource : Strict, url })

globalThis.openStrict = (url) => {
  const source = new Strict(url)
  source.close()
  return source.url
}

globalThis.countStrict = (url) =>
  new Promise((resolve) => {
    const source = new Strict(url)
    const data = []
    source.onmessage = (event) => void data.push(event.data)
    source.onerror = () => {
      source.close()
      resolve(data)
    }
  })

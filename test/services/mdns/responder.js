// A responder of ours, for what Avahi cannot be told to do: short lives, and one announcement after the other. Reads commands from
// its parent: the records to send. Answers no queries.
import multicastDns from 'multicast-dns'

const [, , address] = process.argv
const mdns = multicastDns({ bind: '0.0.0.0', interface: address })

mdns.on('ready', () => tellParent('ready'))
process.on('message', (answers) => mdns.respond({ answers }, (error) => tellParent(error ? String(error) : 'sent')))
process.on('disconnect', () => mdns.destroy())

// Like test/support/tell-parent.ts, which Node cannot load without a loader. The parent may have closed the
// channel a moment ago. Without a callback, Node turns the failed write (EPIPE) into an uncaught error.
function tellParent(message) {
  process.send?.(message, undefined, undefined, () => undefined)
}

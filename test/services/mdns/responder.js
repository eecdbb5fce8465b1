// A responder of ours, for what Avahi cannot be told to do: short lives, and one announcement after the other. Reads commands from
// its parent: the records to send. Answers no queries.
import multicastDns from 'multicast-dns'

const [, , address] = process.argv
const mdns = multicastDns({ bind: '0.0.0.0', interface: address })

mdns.on('ready', () => process.send?.('ready'))
process.on('message', (answers) => mdns.respond({ answers }, (error) => process.send?.(error ? String(error) : 'sent')))
process.on('disconnect', () => mdns.destroy())

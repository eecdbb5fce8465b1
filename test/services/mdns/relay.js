// Passes connections to a socket in a folder, which every network namespace sees, on to a port of its own namespace.
import { connect, createServer } from 'node:net'

const [, , path, port] = process.argv

createServer({ allowHalfOpen: true }, (outer) => {
  const inner = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
  outer.pipe(inner)
  inner.pipe(outer)
  for (const [one, other] of [
    [outer, inner],
    [inner, outer],
  ]) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
  }
}).listen(path, () => console.log('ready'))

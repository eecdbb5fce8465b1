import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import type { ThirdPartyClient, Told } from './client.ts'
import { thirdPartyContract } from './contract.ts'

const program = fileURLToPath(new URL('reader.py', import.meta.url))

const python: ThirdPartyClient = {
  name: 'Python',
  open(url) {
    const child = spawn('python3', [program, url], { stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(child, 'exit')
    const told: Told[] = []
    createInterface(child.stdout).on('line', (line) => void told.push(JSON.parse(line)))
    return {
      told,
      get stopped() {
        return child.exitCode === 0
      },
      async close() {
        child.kill()
        await ended
      },
    }
  },
}

describe.concurrent('thirty lines of Python and its standard library', () => {
  thirdPartyContract(python, {
    returnsAfterEnd: true,
    countsCutIds: false,
    at204: 'stops',
    at503: 'returns',
    unaskedMs: 3000,
    comments: 'hidden',
  })
})

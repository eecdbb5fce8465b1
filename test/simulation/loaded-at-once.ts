import { fileURLToPath } from 'node:url'

const client = fileURLToPath(new URL('../../packages/client/src/', import.meta.url))

/**
 * Loads the parts of the client that it loads later together with the rest. A part that is loaded later takes real time, in which
 * virtual time runs on to its end.
 */
export function loadedAtOnce(): LoadedAtOncePlugin {
  return {
    name: 'rejoin-loaded-at-once',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(client)) return null
      const sources: string[] = []
      const body = code.replace(/(?<!typeof )\bimport\(('\.[^']+')\)/g, (_, source: string) => {
        sources.push(source)
        return `Promise.resolve(loaded${sources.length - 1})`
      })
      if (sources.length === 0) return null
      const imports = sources.map((source, index) => `import * as loaded${index} from ${source}`)
      return { code: [...imports, body].join('\n'), map: null }
    },
  }
}

interface LoadedAtOncePlugin {
  readonly name: string
  readonly enforce: 'pre'
  transform(code: string, id: string): { code: string; map: null } | null
}

import { readFileSync } from 'node:fs'

export type Resolve = (source: string, importer: string) => Promise<string | undefined>

/** Knows which files are loaded with a file, that file included. Each file is read once. */
export function createImportGraph(resolve: Resolve): { loadedWith(file: string): Promise<ReadonlySet<string>> } {
  const imports = new Map<string, Promise<readonly string[]>>()

  async function readImports(file: string): Promise<readonly string[]> {
    const resolved = await Promise.all(sourcesIn(readFileSync(file, 'utf8')).map((source) => resolve(source, file)))
    return resolved.filter((found) => found !== undefined)
  }

  return {
    async loadedWith(file) {
      const loaded = new Set([file])
      // A set goes on with what is added to it on the way.
      for (const each of loaded) {
        if (!imports.has(each)) imports.set(each, readImports(each))
        for (const imported of (await imports.get(each)) ?? []) loaded.add(imported)
      }
      return loaded
    },
  }
}

/** An import of types loads nothing. */
function sourcesIn(text: string): string[] {
  const still = text.matchAll(/^(?:import|export)\b(?! type\b)[^'"]*?\bfrom '([^']+)'/gm)
  const later = text.matchAll(/\bimport\('([^']+)'\)/g)
  return [...still, ...later].map(([, source = '']) => source)
}

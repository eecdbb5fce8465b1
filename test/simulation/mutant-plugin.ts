import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createImportGraph } from './import-graph.ts'

/** A text of a source file, and what stands there in the mutant. */
export interface Patch {
  /** Under packages/. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const packages = `${root}packages/`
const mark = '?mutant='

/**
 * Loads a package once more for each mutant, with patched sources: `import('@rejoin/hub?mutant=name')`. The sources themselves
 * stay as they are. Files that load no patched file are shared by all mutants: to load them anew takes longer than to play a
 * history.
 */
export function mutantPlugin(patchesOf: (mutant: string) => readonly Patch[]): MutantPlugin {
  let graph: ReturnType<typeof createImportGraph> | undefined
  return {
    name: 'rejoin-mutants',
    enforce: 'pre',
    async resolveId(source, importer) {
      const [plainSource = '', named] = source.split(mark)
      const [plainImporter, inherited] = importer?.split(mark) ?? []
      const mutant = named ?? inherited
      if (mutant === undefined) return null
      const resolved = await this.resolve(plainSource, plainImporter, { skipSelf: true })
      if (!resolved?.id.startsWith(packages)) return resolved
      graph ??= createImportGraph(async (source, importer) => {
        const found = await this.resolve(source, importer, { skipSelf: true })
        return found?.id.startsWith(packages) ? found.id : undefined
      })
      const loaded = await graph.loadedWith(resolved.id)
      const isPatched = patchesOf(mutant).some((patch) => loaded.has(packages + moduleOf(patch)))
      return isPatched ? resolved.id + mark + mutant : resolved
    },
    load(id) {
      const [file = '', mutant] = id.split(mark)
      if (mutant === undefined) return null
      return patchedSource(file, patchesOf(mutant))
    },
  }
}

/** Loads the sources themselves with these patches, for whoever imports them. */
export function patchPlugin(patches: readonly Patch[]): PatchPlugin {
  const files = new Set(patches.map((patch) => packages + moduleOf(patch)))
  return {
    name: 'rejoin-patches',
    enforce: 'pre',
    load: (id) => (files.has(id) ? patchedSource(id, patches) : null),
  }
}

/** Throws unless every patch finds its text. A file that was moved is never loaded, so `load` alone would not notice. */
export function checkPatches(patches: readonly Patch[]): void {
  for (const patch of patches) patchedSource(packages + moduleOf(patch), patches)
}

/** The module that a patch changes. A Lua file is text in the module beside it that reads it. */
function moduleOf({ file }: Patch): string {
  return file.replace(/[^/]+\.lua$/, 'lua.ts')
}

function patchedSource(module: string, patches: readonly Patch[]): string {
  const own = patches.filter((patch) => module === packages + moduleOf(patch))
  const source = own.filter(({ file }) => module === packages + file).reduce(applyPatch, readFileSync(module, 'utf8'))
  const luaFiles = new Set(own.map(({ file }) => file).filter((file) => file.endsWith('.lua')))
  return [...luaFiles].reduce((loader, file) => {
    const text = own.filter((patch) => patch.file === file).reduce(applyPatch, readFileSync(packages + file, 'utf8'))
    const find = `read('./${file.slice(file.lastIndexOf('/') + 1)}')`
    return applyPatch(loader, { file: module.slice(packages.length), find, replace: JSON.stringify(text) })
  }, source)
}

/** A source that was rewritten must not leave a mutant that breaks nothing. */
function applyPatch(text: string, { file, find, replace }: Patch): string {
  const found = text.split(find).length - 1
  if (found !== 1)
    throw new Error(`The mutant replaces a text that packages/${file} has ${found} times, not once: ${find}`)
  return text.replace(find, () => replace)
}

interface MutantPlugin {
  readonly name: string
  readonly enforce: 'pre'
  resolveId(
    this: {
      resolve(
        source: string,
        importer: string | undefined,
        options: { skipSelf: boolean },
      ): Promise<{ id: string } | null>
    },
    source: string,
    importer: string | undefined,
  ): Promise<{ id: string } | string | null>
  load(id: string): string | null
}

interface PatchPlugin {
  readonly name: string
  readonly enforce: 'pre'
  load(id: string): string | null
}

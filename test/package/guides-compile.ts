import { beforeAll, describe, expect, test } from 'vitest'
import { guideBlocks } from './guide-blocks.ts'
import { compileModules } from './guide-compiler.ts'
import { guideModules } from './guide-modules.ts'
import { nameOf, namesOfTheReader } from './guide-names.ts'
import { had, installedBy, load, project } from './guide-project.ts'
import { readmeCommands } from './readme-code.ts'

const modules = guideModules(guideBlocks())
const pages = [...new Set(modules.map(({ page }) => page))]

/** What the project of the README has, besides our packages. */
const ofTheReadme = readmeCommands().flatMap((command) => command.split(' '))

/** The blocks of the guides compile in the project of a reader, pasted one after the other. */
export function guidesCompile(): void {
  describe('in a project of the README, under "strict"', () => {
    let complaints: string[]
    beforeAll(async () => {
      complaints = await compileModules(project.folder, modules)
    })

    test.each(pages)('the blocks of %s compile, pasted one after the other', (page) => {
      expect(complaints.filter((line) => line.startsWith(`guides/${page}/`))).toEqual([])
    })

    test('the compiler complains of nothing else', () => {
      expect(complaints.filter((line) => !line.startsWith('guides/'))).toEqual([])
    })

    test.each(pages)('%s has its reader install every package that it imports', (page) => {
      const theirs = modules.filter((module) => module.page === page).flatMap(({ code }) => packagesIn(code))
      const installed = [...ofTheReadme, ...installedBy(page), ...(had[page] ?? [])]
      expect(theirs.filter((name) => !installed.includes(name))).toEqual([])
    })

    test('a page takes none of our names for granted', async () => {
      const ours = new Set<string>()
      for (const entry of project.entries) for (const name of Object.keys(await load<object>(entry))) ours.add(name)
      expect(
        Object.values(namesOfTheReader)
          .flat()
          .map(nameOf)
          .filter((name) => ours.has(name)),
      ).toEqual([])
    })
  })
}

/** The packages of others that code imports. */
function packagesIn(code: string): string[] {
  return [...code.matchAll(/^\s*(?:import|\} from)\b.*'((?:@[\w-]+\/)?[\w-]+)[^']*'/gm)]
    .map(([, name = '']) => name)
    .filter((name) => !/^(?:node|@?rejoin)\b/.test(name))
}

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../support/paths.ts'
import { readText } from '../support/repository.ts'
import { guideBlocks } from './guide-blocks.ts'
import { linkPackages, packedProject } from './packed-project.ts'
import { readmeCommands } from './readme-code.ts'

/** What the reader of a page has already: the page, or a part of it, is about it. */
export const had: Readonly<Record<string, readonly string[]>> = {
  'adapters.md': ['@nestjs/common', 'rxjs'],
  'client.md': ['react'],
  'load-then-follow.md': ['@tanstack/react-query', 'react'],
  'redux.md': ['@reduxjs/toolkit'],
  'svelte-and-solid.md': ['solid-js', 'svelte'],
  'tanstack-query.md': ['@tanstack/react-query', 'react'],
}

/** Types that the frameworks of the reader's own code bring along. */
const types = ['@types/express', '@types/node', '@types/react', '@types/react-dom']

/** What a page has its reader install: `npm install --save-dev vitest`, as a command or in a sentence. */
export function installedBy(page: string): string[] {
  return [...readText(`docs/guides/${page}`).matchAll(/\bnpm install ((?:--save-dev )?)([@\w/. -]+)/g)]
    .flatMap(([, , names = '']) => names.trim().split(' '))
    .filter((name) => !/^-|rejoin\b/.test(name))
}

const pages = [...new Set(guideBlocks().map(({ page }) => page))]
const names = [...new Set([...Object.values(had).flat(), ...types, ...pages.flatMap(installedBy)])]
// Linking what the clone has takes no time. The rest is fetched.
const isHere = (name: string) => existsSync(join(root, 'node_modules', name))

/** The project of a reader of the guides, made by the commands of the README. One is enough for all guides. */
export const project = await packedProject([
  ...readmeCommands(),
  `npm install ${names.filter((name) => !isHere(name)).join(' ')}`,
])
await linkPackages(project.folder, names.filter(isHere))

const require = createRequire(join(project.folder, 'index.js'))

/** Imports a package as code in the project would. */
export function load<T>(name: string): Promise<T> {
  return import(/* @vite-ignore */ name.startsWith('node:') ? name : pathToFileURL(require.resolve(name)).href)
}

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../support/paths.ts'
import { guideBlocks } from './guide-blocks.ts'
import { linkPackages, packedProject } from './packed-project.ts'
import { readmeCommands } from './readme-code.ts'

/** What the reader of a page has already: the page is about it. */
const had = [
  '@nestjs/common',
  '@reduxjs/toolkit',
  '@tanstack/react-query',
  '@trpc/server',
  'react-dom',
  'rxjs',
  'solid-js',
  'svelte',
]

/** Types that the frameworks of the reader's own code bring along. */
const types = ['@types/express', '@types/node', '@types/react', '@types/react-dom']

/** What the commands of the pages install, such as `npm install --save-dev vitest`. */
const installed = guideBlocks()
  .flatMap(({ code }) => [...code.matchAll(/\bnpm install ((?:--save-dev )?)([@\w/. -]+)$/gm)])
  .flatMap(([, , names = '']) => names.trim().split(' '))
  .filter((name) => !/^-|rejoin\b/.test(name))

const names = [...had, ...types, ...installed]
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

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readText, root } from './repository.ts'

/**
 * The TypeScript of the README, by file name. A block that opens with a comment like `// server.ts` is that file; any
 * other has to compile as well, and is named by its place.
 */
export function readmeCode(): Map<string, string> {
  const readme = existsSync(join(root, 'README.md')) ? readText('README.md') : ''
  const blocks = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? '')
  return new Map(blocks.map((block, index) => [nameOf(block) ?? `block-${index + 1}.ts`, block]))
}

function nameOf(block: string): string | undefined {
  return /^\/\/ ([\w-]+\.ts)\b/.exec(block)?.[1]
}

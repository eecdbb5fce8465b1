import { readText } from '../support/repository.ts'

/**
 * The TypeScript of the README, by file name. A block that opens with a comment like `// server.ts` is that file; any
 * other has to compile as well, and is named by its place.
 */
export function readmeCode(): Map<string, string> {
  const blocks = blocksOf('ts')
  return new Map(blocks.map((block, index) => [nameOf(block) ?? `block-${index + 1}.ts`, block]))
}

/** The lines of the block of the README that makes a project and installs the packages into it. */
export function readmeCommands(): string[] {
  const block = blocksOf('sh').find((text) => text.startsWith('npm init -y'))
  return (block ?? '').split('\n').filter((line) => line !== '')
}

function blocksOf(language: string): string[] {
  const fences = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm')
  return [...readText('README.md').matchAll(fences)].map(([, block]) => block ?? '')
}

function nameOf(block: string): string | undefined {
  return /^\/\/ ([\w-]+\.ts)\b/.exec(block)?.[1]
}

import { readdirSync } from 'node:fs'
import { transform } from 'esbuild'
import { root } from '../support/paths.ts'
import { readText } from '../support/repository.ts'

/** A block of code in a guide. */
export interface GuideCode {
  readonly page: string
  readonly code: string
}

export function guideCode(): GuideCode[] {
  const pages = readdirSync(`${root}docs/guides`).sort()
  return pages.flatMap((page) =>
    [...readText(`docs/guides/${page}`).matchAll(/^```(?:ts|js)\n([\s\S]*?)^```$/gm)].map(([, code = '']) => ({
      page,
      code,
    })),
  )
}

/**
 * Runs a block as it stands, with the names that its page takes for granted.
 *
 * @param site - stands for the addresses of the page: `https://hub.example`, and paths such as `/events/orders/42`
 * @returns the constants that the block declares
 */
// biome-ignore lint/suspicious/noExplicitAny: a guide declares whatever it likes.
export async function runCode(code: string, given: Record<string, unknown>, site = ''): Promise<any> {
  const local = code
    .replaceAll(/https:\/\/hub\.example(?:\.com)?/g, site)
    .replaceAll(/'(?=\/(?:events|log)\b)/g, `'${site}`)
  const body = local.replaceAll(/^import (type )?(.+) from ('.+')$/gm, (_, isType, names, from) =>
    isType ? '' : `const ${names.startsWith('{') ? names : `{ default: ${names} }`} = await load(${from})`,
  )
  const declared = [...body.matchAll(/^(?:export )?(?:const|function) (\w+)/gm)].map(([, name]) => name)
  const whole = `async function run(load, { ${Object.keys(given).join(', ')} }) {
    { ${body.replaceAll(/^export /gm, '')}
      return { ${declared.join(', ')} } } }`
  const { code: plain } = await transform(whole, { loader: 'ts', target: 'es2023' })
  return new Function(`${plain}\nreturn run`)()(load, given)
}

function load(name: string): Promise<unknown> {
  return import(/* @vite-ignore */ name)
}

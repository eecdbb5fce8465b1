import { transform } from 'esbuild'
import { load } from './guide-project.ts'

/**
 * Runs a block as it stands, in the project of a reader, with the names that the page takes for granted.
 *
 * @param given - names of the reader's own application, and of earlier blocks. A name of our packages has to be imported by the block.
 * @param site - stands for the addresses of the page: `https://hub.example`, and paths such as `/events/orders/42`
 * @returns the constants that the block declares
 */
// biome-ignore lint/suspicious/noExplicitAny: a guide declares whatever it likes.
export async function runCode(code: string, given: Record<string, unknown>, site = ''): Promise<any> {
  const local = code
    .replaceAll(/https:\/\/hub\.example(?:\.com)?/g, site)
    .replaceAll(/'(?=\/(?:events|log)\b)/g, `'${site}`)
  const body = local.replaceAll(/^import (type )?(.+) from ('[^']+')(?: \/\/.*)?$/gm, (_, isType, names, from) => {
    if (isType) return ''
    if (names.startsWith('* as ')) return `const ${names.slice(5)} = await load(${from})`
    return `const ${names.startsWith('{') ? namesOf(names) : `{ default: ${names} }`} = await load(${from})`
  })
  const declared = [...body.matchAll(/^(?:export )?(?:const|(?:async )?function) (\w+)/gm)].map(([, name]) => name)
  const whole = `async function run(load, { ${Object.keys(given).join(', ')} }) {
    { ${body.replaceAll(/^export /gm, '')}
      return { ${declared.join(', ')} } } }`
  const { code: plain } = await transform(whole, { loader: 'ts', target: 'es2023' })
  return new Function(`${plain}\nreturn run`)()(load, given)
}

/** `{ a, type B }` without its types. */
function namesOf(list: string): string {
  return list.replaceAll(/\btype \w+(?:, )?/g, '')
}

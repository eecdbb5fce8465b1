import type { GuideBlock } from './guide-blocks.ts'

/** A file that a reader of a page has, after pasting its blocks one after the other. */
export interface GuideModule {
  readonly page: string
  /** Below the folder of the page. */
  readonly file: string
  readonly code: string
}

const extensions: Record<string, string> = { ts: 'ts', tsx: 'tsx', js: 'js', vue: 'ts', html: 'js' }

/**
 * Pastes the blocks of a page as a reader does. A block that opens with a comment like `// channels.ts` is that file; one that
 * imports something begins a file; any other block goes on with the file before it.
 */
export function guideModules(blocks: readonly GuideBlock[]): GuideModule[] {
  const modules: GuideModule[] = []
  let variant = 1
  for (const { page, language, code: block } of blocks) {
    const extension = extensions[language]
    if (extension === undefined) continue
    const code = language === 'vue' || language === 'html' ? scriptOf(block) : block
    const pasted = modules.filter((module) => module.page === page)
    if (pasted.length === 0) variant = 1
    const name = /^\/\/ ([\w\-./[\]]+\.tsx?)\b/.exec(code)?.[1]
    // A page that shows a file a second time shows another way to do the same.
    if (name !== undefined && pasted.some(({ file }) => file === `${variant}/${name}`)) variant += 1
    const last = pasted.at(-1)
    const goesOn = language !== 'html' && name === undefined && !/^import /m.test(code)
    if (goesOn && last?.file.endsWith(`.${extension}`)) {
      modules[modules.indexOf(last)] = { ...last, code: `${last.code}\n${code}` }
    } else {
      modules.push({ page, file: `${variant}/${name ?? `block-${pasted.length + 1}.${extension}`}`, code })
    }
  }
  return modules
}

/** The scripts of a page or a component. */
function scriptOf(code: string): string {
  const scripts = [...code.matchAll(/<script(?! type="importmap")[^>]*>\n([\s\S]*?)<\/script>/g)]
  // The page has the reader copy this file of the package to the site.
  return scripts.map(([, script = '']) => script.replace("'/static/rejoin.js'", "'@rejoin/client'")).join('')
}

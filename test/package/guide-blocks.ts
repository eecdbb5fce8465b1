import { readdirSync } from 'node:fs'
import { root } from '../support/paths.ts'
import { readText } from '../support/repository.ts'

/** A block of a guide, between its fences. */
export interface GuideBlock {
  readonly page: string
  readonly language: string
  readonly code: string
}

export function guideBlocks(): GuideBlock[] {
  const pages = readdirSync(`${root}docs/guides`).sort()
  return pages.flatMap((page) =>
    [...readText(`docs/guides/${page}`).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(
      ([, language = '', code = '']) => ({ page, language, code }),
    ),
  )
}

export function guideCode(): GuideBlock[] {
  return guideBlocks().filter(({ language }) => language === 'ts' || language === 'js')
}

import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../support/paths.ts'
import { readText, trackedFiles } from '../support/repository.ts'

describe('every relative link in the documentation leads somewhere', () => {
  test.each(trackedFiles('*.md'))('%s', (file) => {
    const broken = linksOf(readText(file)).filter((link) => !leadsSomewhere(link, file))
    expect(broken).toEqual([])
  })
})

function linksOf(text: string): string[] {
  const prose = withoutCode(text)
  const inline = prose.matchAll(/\]\(<?([^\s)>]+)>?(?:\s+"[^"]*")?\)/g)
  const defined = prose.matchAll(/^\[[^\]]+\]:\s*<?([^\s>]+)>?/gm)
  return [...inline, ...defined].map(([, link]) => link ?? '').filter((link) => !/^[a-z]+:/.test(link))
}

function leadsSomewhere(link: string, from: string): boolean {
  const [path = '', fragment] = link.split('#')
  const target = path === '' ? from : normalize(join(dirname(from), decodeURIComponent(path)))
  if (target.startsWith('..') || !existsSync(join(root, target))) return false
  return fragment === undefined || !target.endsWith('.md') || anchorsOf(readText(target)).has(fragment)
}

/** As GitHub makes them: lower case, punctuation dropped, spaces to dashes, repeats numbered. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  const seen = new Map<string, number>()
  for (const [, heading = ''] of withoutFences(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const shown = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '')
    const slug = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-')
    const repeats = seen.get(slug) ?? 0
    seen.set(slug, repeats + 1)
    anchors.add(repeats === 0 ? slug : `${slug}-${repeats}`)
  }
  return anchors
}

function withoutCode(text: string): string {
  return withoutFences(text).replaceAll(/`[^`\n]*`/g, '')
}

function withoutFences(text: string): string {
  return text.replaceAll(/^(`{3,}|~{3,}).*\n[\s\S]*?^\1`*$/gm, '')
}

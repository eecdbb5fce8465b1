import type { Measured } from './measure.ts'
import { proxyTitles } from './titles.ts'

/** The table of docs/guides/proxies.md, as Markdown. */
export function tableOf(measured: readonly Measured[]): string {
  const headings = ['proxy', 'configuration', 'first byte', 'delay, p99', ...columns.map(([, heading]) => heading)]
  const rows = measured.map(({ proxy, version, configuration, firstByteMs, delayP99Ms, states }) => [
    `${proxyTitles[proxy]} ${version}`,
    configuration,
    `${Math.ceil(firstByteMs)} ms`,
    `${Math.ceil(delayP99Ms)} ms`,
    ...columns.map(([names]) => wordFor(names.map((name) => states[name] ?? 'unknown'))),
  ])
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function wordFor(states: readonly string[]): string {
  if (states.every((state) => state === 'good')) return 'yes'
  return states.includes('fault') ? '**no**' : '**badly**'
}

const columns: readonly [names: readonly string[], heading: string][] = [
  [['stream'], 'streamed'],
  [['header-cursor', 'query-cursor'], 'cursors arrive'],
  [['ids', 'heartbeats', 'compression'], 'bytes intact'],
  [['caching'], 'own answer'],
  [['idle'], 'quiet for 70 s'],
  [['disconnect'], 'leaving seen ≤ 2 s'],
]

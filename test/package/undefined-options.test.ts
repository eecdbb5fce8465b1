import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

/** Interfaces of options whose name does not say so. */
const others = [
  'AccessRules',
  'Grant',
  'JwtRule',
  'MaintenanceTimes',
  'ProxyTrust',
  'PublishCall',
  'ReplayLimits',
  'RequestLimits',
  'RightsRule',
]

/** The program is used by commands and a file. Only these modules of it take options of another program. */
const files = trackedFiles('packages/*/src/**').filter(
  (file) => /\.tsx?$/.test(file) && /^packages\/(?!rejoin)|\/(?:serve|limits\/options|access\/rules)\.ts$/.test(file),
)

test('every option accepts undefined, so that a value that may be missing is passed on under exactOptionalPropertyTypes', () => {
  const options = files.flatMap((file) => optionsOf(readText(file)))
  expect(options.length).toBeGreaterThan(150)
  // The `undefined` behind the arrow of a function that has no brackets is what the function returns.
  const accepts = (type: string) => /\b(?:undefined|unknown)$/.test(type) && !/^\((?!\().*\) => /.test(type)
  expect(options.filter(([, type]) => !accepts(type)).map(([name]) => name)).toEqual([])
})

/** The optional members of all interfaces of options in a module, each with its type. */
function optionsOf(source: string): [name: string, type: string][] {
  return [...source.matchAll(/^(?:export )?interface (\w+)[^{]*\{\n([\s\S]*?)\n\}/gm)].flatMap(
    ([, name = '', body = '']) => {
      if (!name.endsWith('Options') && !others.includes(name)) return []
      // A member whose type takes several lines ends at the same depth as it begins.
      const members = body.matchAll(/^ {2}(?:readonly )?(\w+)\?(?:: |(?=\())((?:.*\{\n[\s\S]*?\n {2}\}.*|.*))$/gm)
      return [...members].map(([, member, type = '']): [string, string] => [`${name}.${member}`, type])
    },
  )
}

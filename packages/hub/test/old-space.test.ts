import { expect, test } from 'vitest'
import { oldSpaceBytes } from '../src/old-space.ts'

test.each([
  ['no option', [], Number.POSITIVE_INFINITY],
  ['other options', ['--inspect', '--max-semi-space-size=4'], Number.POSITIVE_INFINITY],
  ['a number', ['--max-old-space-size=64'], 64],
  ['underscores', ['--max_old_space_size=64'], 64],
  ['an argument of its own', ['--max-old-space-size', '64', '--inspect'], 64],
  ['two numbers, of which the last counts', ['--max-old-space-size=64', '--max-old-space-size=32'], 32],
  ['0, which V8 takes for its default', ['--max-old-space-size=0'], Number.POSITIVE_INFINITY],
  ['no number', ['--max-old-space-size=much'], Number.POSITIVE_INFINITY],
  ['nothing behind it', ['--max-old-space-size'], Number.POSITIVE_INFINITY],
])('the space for old objects is read from %s', (_, options, megabytes) => {
  expect(oldSpaceBytes(options)).toBe(megabytes * 1024 * 1024)
})

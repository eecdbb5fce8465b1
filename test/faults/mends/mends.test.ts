import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { checkPatches } from '../../simulation/mutant-plugin.ts'
import { mends } from './mends.ts'

// Each of them is seen to fail by `npm run faults -- mends`, which takes too long for here.
test.each(mends)(
  'the patch that brings the mistake $name back fits the sources, and the file of its test is there',
  ({ patches, caughtBy }) => {
    checkPatches(patches)
    expect(existsSync(caughtBy.file)).toBe(true)
  },
)

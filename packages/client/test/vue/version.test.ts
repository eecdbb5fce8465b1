import { expect, test } from 'vitest'
import { version } from 'vue'

test(`these tests run with Vue ${process.env.VUE}`, () => {
  expect(version.startsWith(`${process.env.VUE}.`)).toBe(true)
})

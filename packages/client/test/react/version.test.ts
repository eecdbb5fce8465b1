import { version } from 'react'
import { version as domVersion } from 'react-dom'
import { expect, test } from 'vitest'

test(`these tests run with React ${process.env.REACT}`, () => {
  expect([version, domVersion].map((it) => it.split('.')[0])).toEqual([process.env.REACT, process.env.REACT])
})

import { expect, test } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { each, recordsOf } from './support/readers.ts'
import { sharedChromium } from './support/shared-chromium.ts'
import { cutInTurn, openBusyStage } from './support/stage.ts'

const chromium = sharedChromium()

// Made by openssl, which not every machine has.
const certificate = makeCertificate()

test.skipIf(!certificate)('over TLS and HTTP/2, cuts cost no reader an event on any transport', async (context) => {
  const stage = await openBusyStage(context, chromium.trusting, { certificate })
  // All of them share one connection, and lose it together.
  await cutInTurn(stage, ['reset', 'fin', 'reset'])
  const published = await stage.publisher.finish()
  expect(await recordsOf(stage.page)).toEqual(each(published))
})

import { ByteWriter, unseal } from './bytes.ts'
import { copyMarkKey } from './keys.ts'

/** What a copy says of itself until a hub opens it. */
export interface CopyMark {
  /** False when the last commit of the copied log continued an older copy, so that none of its last events is certain. */
  readonly isCertain: boolean
}

export function sealCopyMark(madeAt: number, { isCertain }: CopyMark): Buffer {
  writer.number(madeAt)
  writer.number(isCertain ? 1 : 0)
  return writer.seal(copyMarkKey)
}

/** A damaged mark shows that the log is a copy, and proves nothing of its last events. */
export function openCopyMark(sealed: Buffer): CopyMark {
  const reader = unseal(copyMarkKey, sealed)
  if (!reader) return { isCertain: false }
  reader.number()
  // An earlier version stored only the time.
  return { isCertain: reader.isAtEnd || reader.number() === 1 }
}

const writer = new ByteWriter()

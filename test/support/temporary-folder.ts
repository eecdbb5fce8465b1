import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own, for whoever removes it again. */
export function temporaryFolder(): { folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

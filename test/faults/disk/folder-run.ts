import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { announceRun } from '../long-run.ts'

/** From the terminal: does something to the folder of `rejoin serve` again and again, and ends with what was wrong. */
export async function runOnFolder(
  name: string,
  cycles: number,
  run: (options: FolderRunOptions) => Promise<FolderRunOutcome>,
): Promise<void> {
  const { inputs, progress } = announceRun(name, { cycles })
  const directory = mkdtempSync(join(tmpdir(), `rejoin-${name}-`))
  const { wrong, ...counts } = await run({
    ...{ ...inputs, directory },
    onProgress(cycle) {
      if (cycle % 20 === 0) progress(`${cycle} of ${inputs.cycles}`)
    },
  })
  rmSync(directory, { recursive: true })
  console.log(JSON.stringify(counts))
  for (const text of wrong) console.log(text)
  console.log(wrong.length === 0 ? 'PASSED' : 'FAILED')
  if (wrong.length > 0) process.exitCode = 1
}

export interface FolderRunOptions {
  readonly directory: string
  readonly seed: number
  readonly cycles: number
  onProgress?(cycle: number): void
}

export interface FolderRunOutcome {
  /** What was lost in silence, served wrongly or announced without need. */
  readonly wrong: readonly string[]
}

import type { Backup, BackupProgress } from '@rejoin/hub/log'
import { createProgress } from '../live-view.ts'
import type { ProgramHost } from '../program-host.ts'

/** Makes a copy, and shows its progress on a terminal. */
export async function showCopy(
  host: ProgramHost,
  copy: (onProgress: (progress: BackupProgress) => void) => Promise<Backup>,
): Promise<Backup> {
  const progress = createProgress(host)
  try {
    return await copy(({ copiedBytes, totalBytes }) =>
      progress.show(() => `${copiedWords(copiedBytes)} of ${copiedWords(totalBytes)}`),
    )
  } finally {
    progress.clear()
  }
}

export function copiedWords(bytes: number): string {
  return bytes < mebibyte ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / mebibyte).toFixed(1)} MiB`
}

const mebibyte = 1024 * 1024

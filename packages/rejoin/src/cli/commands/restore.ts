import type { Command } from 'commander'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { copiedWords, showCopy } from './copy-progress.ts'
import { addDataFlags, type DataFlags, dataFolder } from './data-folder.ts'

export function addRestore(program: Command, host: ProgramHost): void {
  const command = program
    .command('restore')
    .description('copy a backup to where the hub of this folder keeps its log; stop the hub first')
    .argument('<folder>', 'folder of the backup; the backup is not changed')
    .option('--json', 'print a JSON object')
  addDataFlags(command).action((folder: string) => runRestore(folder, command.opts(), host))
}

async function runRestore(folder: string, flags: DataFlags & { json?: true }, host: ProgramHost): Promise<void> {
  const data = await dataFolder(flags, host)
  const { restoreLmdb } = await import('@rejoin/hub/lmdb')
  const { folder: made, bytes } = await showCopy(host, (onProgress) => restoreLmdb(folder, data, { onProgress }))
  const words = `${made} holds the log of the backup, ${copiedWords(bytes)}. Readers that come back are told to reload.`
  return createOutput(host).line(flags.json ? JSON.stringify({ folder: made, bytes }) : words)
}

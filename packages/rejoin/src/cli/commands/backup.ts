import type { Command } from 'commander'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { copiedWords, showCopy } from './copy-progress.ts'
import { addDataFlags, type DataFlags, dataFolder } from './data-folder.ts'

export function addBackup(program: Command, host: ProgramHost): void {
  const command = program
    .command('backup')
    .description('copy the log of this folder into another folder, even while a hub writes to the log')
    .argument('<folder>', 'folder for the copy; must not hold a log')
    .option('--json', 'print a JSON object')
  addDataFlags(command).action((folder: string) => runBackup(folder, command.opts(), host))
}

async function runBackup(folder: string, flags: DataFlags & { json?: true }, host: ProgramHost): Promise<void> {
  const data = await dataFolder(flags, host)
  const { backupLmdb } = await import('@rejoin/hub/lmdb')
  const { folder: made, bytes } = await showCopy(host, (onProgress) => backupLmdb(data, folder, { onProgress }))
  const words = `${made} holds the log as it was, ${copiedWords(bytes)}. Put it back with: rejoin restore ${folder}`
  return createOutput(host).line(flags.json ? JSON.stringify({ folder: made, bytes }) : words)
}

import { RejoinError } from '@rejoin/protocol'
import type { Command } from 'commander'
import { defaultConfigFile } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import { shownLocation } from '../../config/log-location.ts'
import type { ProgramHost } from '../program-host.ts'

export interface DataFlags {
  readonly data?: string
  readonly config?: string
}

/** Adds the flags of commands that work on the folder of a log. */
export function addDataFlags(command: Command): Command {
  return command
    .option('--data <dir>', 'folder of the lmdb log (default: data in the settings of this folder)')
    .option('--config <file>', `file with the hub's settings (default: ${defaultConfigFile}, if it exists)`)
}

/** The folder that `--data` names, else the folder in the settings of the current directory. */
export async function dataFolder(flags: DataFlags, { env }: ProgramHost): Promise<string> {
  if (flags.data !== undefined) return flags.data
  const { config } = await loadConfig({ flags: {}, env, file: flags.config })
  if (config.log === 'lmdb') return config.data
  throw new RejoinError(
    `The log of this hub is ${shownLocation(config.log)}, which has no folder. Of a Redis, make the backup with Redis itself; ` +
      'of another log, name the folder: --data.',
    { code: 'invalid-option' },
  )
}

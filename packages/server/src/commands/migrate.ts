import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { defaultConfigFile } from '../config/file.ts'
import { loadConfig } from '../config/load.ts'
import { logKindOf, shownPlace } from '../config/log-place.ts'
import { createOutput } from '../output/output.ts'
import type { ProgramHost } from '../program-host.ts'
import { version } from '../version.ts'
import { logSourceOf } from './log-source.ts'

export function addMigrate(program: Command, host: ProgramHost): void {
  const command = program
    .command('migrate')
    .description('bring a log into the format of this version, or say that it has it; its hub has to be stopped')
    .option('--log <name>', 'which log, as for serve')
    .option('--data <folder>', 'its folder, as for serve')
    .option('--config <file>', `file with the hub's settings (default: ${defaultConfigFile}, if it is there)`)
    .option('--json', 'print a JSON object')
  command.action(() => runMigrate(command.opts(), host))
}

interface MigrateFlags {
  readonly log?: string
  readonly data?: string
  readonly config?: string
  readonly json?: true
}

/**
 * There has been one format since the first release, so a log that can be opened has it already, and opening refuses any
 * other with advice. Whoever changes the format changes it here from the one before.
 */
async function runMigrate({ config: file, json, ...flags }: MigrateFlags, host: ProgramHost): Promise<void> {
  const { config } = await loadConfig({ flags, env: host.env, file })
  const log = logKindOf(config.log)
  const place = log === 'redis' ? shownPlace(config.log) : config.data
  const found = await look(config, host)
  const answer = { log, ...(log === 'memory' ? {} : { place }), found, migrated: false, version }
  await createOutput(host).line(
    json ? JSON.stringify(answer) : `${inWords(log, place, found)} Nothing is to be migrated.`,
  )
}

/** Whether there is a log, which this version can open. It is opened as `serve` would, and no other hub may have it. */
async function look(config: Config, { stderr }: ProgramHost): Promise<boolean> {
  if (config.log === 'memory' || (config.log === 'lmdb' && !(await exists(join(config.data, 'data.mdb'))))) return false
  const hub = await createHub({ log: await logSourceOf(config, (message) => stderr.write(`rejoin: ${message}\n`)) })
  await hub.close()
  return true
}

function inWords(log: ReturnType<typeof logKindOf>, place: string, found: boolean): string {
  if (log === 'memory') return 'A log in memory ends with its hub.'
  return found ? `The log in ${place} has the format of Rejoin ${version}.` : `There is no log in ${place} yet.`
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}

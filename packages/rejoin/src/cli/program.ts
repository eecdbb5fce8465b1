import { RejoinError } from '@rejoin/protocol'
import { Command, CommanderError, Option } from 'commander'
import { closestName } from '../closest-name.ts'
import { defaultConfigFile } from '../config/file.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { flagOf, hasFlag, type Setting, settings } from '../config/settings.ts'
import { version } from '../version.ts'
import { addBackup } from './commands/backup.ts'
import { addChannels } from './commands/channels.ts'
import { collect } from './commands/collect.ts'
import { addCompletion } from './commands/completion.ts'
import { runConfig } from './commands/config.ts'
import { addDoctor } from './commands/doctor.ts'
import { addDrain } from './commands/drain.ts'
import { givenFlags } from './commands/given-flags.ts'
import { addMigrate } from './commands/migrate.ts'
import { addPublish } from './commands/publish.ts'
import { addRestore } from './commands/restore.ts'
import { addStorm } from './commands/storm.ts'
import { addTail } from './commands/tail.ts'
import { addToken } from './commands/token.ts'
import { exitCodeOf } from './exit-code.ts'
import { fail, type ProgramHost } from './program-host.ts'

/** Runs the command line. Resolves when the command is done; for `serve`, when the server listens. */
export async function runProgram(args: readonly string[], host: ProgramHost): Promise<void> {
  try {
    const program = commandLine(host)
    rejectUnknown(args[0] === 'help' ? args[1] : args[0], program)
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    // Commander has already printed what is wrong with the command line, or the help.
    if (error instanceof CommanderError) host.exitCode = error.exitCode
    else if (error instanceof RejoinError) fail(host, error.message, exitCodeOf(error))
    else throw error
  }
}

/** Rejects an unknown command. `serve` is the default, so commander would take an unknown word for an argument of `serve`. */
function rejectUnknown(word: string | undefined, { commands }: Command): void {
  const names = [...commands.map((command) => command.name()), 'help']
  if (word === undefined || word.startsWith('-') || names.includes(word)) return
  const meant = closestName(word, names)
  const advice = meant === undefined ? '' : ` Did you mean ${meant}?`
  throw new RejoinError(`There is no command ${JSON.stringify(word)}.${advice} There are ${names.join(', ')}.`, {
    code: 'invalid-option',
  })
}

/** All commands with their flags. `docs/reference/cli.md` lists them. */
export function commandLine(host: ProgramHost): Command {
  const program = new Command('rejoin')
    .description('Resumable event streams over Server-Sent Events.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      writeErr: (text) => host.stderr.write(text),
      // Replaces commander's own prefix: all other errors of the program begin with its name.
      outputError: (text, write) => write(text.replace(/^error:/, 'rejoin:')),
    })
  const serve = program.command('serve', { isDefault: true }).description('run a hub and its playground')
  const config = program
    .command('config')
    .description('print the settings in effect, and where the value of each comes from')
  addFlags(serve).action(async () => {
    // Only `serve` needs the server, which is most of the code. Without it, every other command starts a third sooner.
    const { runServe } = await import('./commands/serve.ts')
    await runServe(await readSettings(serve, host), givenFlags(serve), host)
  })
  config.option('--json', 'print a JSON object for each setting')
  addFlags(config).action(async () => runConfig(await readSettings(config, host), host, config.getOptionValue('json')))
  addPublish(program, host)
  addTail(program, host)
  addChannels(program, host)
  addToken(program, host)
  addDrain(program, host)
  addBackup(program, host)
  addRestore(program, host)
  addMigrate(program, host)
  addDoctor(program, host)
  addStorm(program, host)
  addCompletion(program, host)
  return program
}

function addFlags(command: Command): Command {
  command.option('--config <file>', `file with settings (default: ${defaultConfigFile}, if it exists)`)
  for (const setting of settings.filter(hasFlag)) {
    for (const [flags, description] of describeFlags(setting)) {
      const option = new Option(flags, description).helpGroup(`${setting.group}:`)
      if (setting.kind.repeatable) option.argParser(collect)
      command.addOption(option)
    }
  }
  return command.addHelpText(
    'after',
    `
Each setting can also be set in the file ("port": 4748) and in the environment (REJOIN_PORT=4748).

Examples:
  rejoin ${command.name()} --port 8080 --admin-port 8081
  rejoin ${command.name()} --log memory
  rejoin ${command.name()} --log redis://localhost:6379 --port 8082
  REJOIN_ACCESS_JWT='[{"secret":"<32 characters or more>"}]' rejoin ${command.name()} --host 0.0.0.0`,
  )
}

function describeFlags(setting: Setting): [flags: string, description: string][] {
  const { kind, help, otherwise } = setting
  const name = flagOf(setting)
  const byDefault = setting.defaultByLog?.lmdb ?? setting.default
  if (kind.argument !== undefined) {
    const repeat = kind.repeatable ? '; can be given several times' : ''
    const choices = kind.choices ? `: ${kind.choices.join(', ')}` : ''
    return [[`--${name} <${kind.argument}>`, `${help}${choices}${repeat} (default: ${otherwise ?? byDefault})`]]
  }
  const yes: [string, string] = [`--${name}`, byDefault === undefined ? `${help} (default: ${otherwise})` : help]
  const no: [string, string] = [`--no-${name}`, `do not ${help}`]
  // Shows only the form that changes the default; both forms when the default depends on other settings.
  return byDefault === undefined ? [yes, no] : [byDefault ? no : yes]
}

function readSettings(command: Command, { env }: ProgramHost): Promise<LoadedConfig> {
  // By the names of the flags as they were typed; commander's own names are in camel case.
  const flags = command.options
    .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
    .map((option) => [option.name().replace(/^no-/, ''), command.getOptionValue(option.attributeName())])
  const { config: file, json: _json, ...others } = Object.fromEntries(flags)
  return loadConfig({ flags: others, env, file })
}

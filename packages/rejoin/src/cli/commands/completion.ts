import { Argument, type Command, type Option } from 'commander'
import { flagOf, settings } from '../../config/settings.ts'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'

export function addCompletion(program: Command, host: ProgramHost): void {
  program
    .command('completion')
    .description('print a script that lets a shell complete commands and flags')
    .addArgument(new Argument('<shell>', 'bash or zsh').choices(['bash', 'zsh']))
    .addHelpText(
      'after',
      `
Put this into ~/.bashrc or ~/.zshrc:
  source <(rejoin completion bash)
  source <(rejoin completion zsh)`,
    )
    .action((shell: 'bash' | 'zsh') => createOutput(host).line(script(program, shell)))
}

function script(program: Command, shell: 'bash' | 'zsh'): string {
  return `${shell === 'zsh' ? zshOpening : ''}_rejoin() {
  local words before=$((COMP_CWORD - 1))
  case "\${COMP_WORDS[*]:1:$before} " in
${cases(program).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _rejoin rejoin`
}

// zsh has bash's completion functions in a module, which has to be loaded.
const zshOpening = 'autoload -Uz compinit bashcompinit && compinit && bashcompinit\n'

/** One case for each command before the word to complete. The longest comes first, because the shell takes the first match. */
function cases(program: Command): string[] {
  const nested = program.commands.flatMap((command) => [...command.commands, command])
  return [...nested, program].flatMap((command) => {
    const path = pathOf(command).map((name) => `${name} `)
    const start = path.length > 0 ? `'${path.join('')}'` : ''
    const values = optionsOf(command, program).flatMap((option) => {
      const offered = valuesOf(option)
      return offered.length > 0 ? [`    ${start}*'${option.long} ') words='${offered.join(' ')}' ;;`] : []
    })
    return [...values, `    ${start}*) words='${wordsOf(command, program).join(' ')}' ;;`]
  })
}

/** The names of a command and its parents, without the name of the program. */
function pathOf(command: Command): string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : []
}

function wordsOf(command: Command, program: Command): string[] {
  const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)
  const flags = optionsOf(command, program).map(({ long }) => long ?? '')
  return [...command.commands.map((each) => each.name()), ...values, ...flags, '--help']
}

/** The program itself takes the flags of `serve`, which is the default command. */
function optionsOf(command: Command, program: Command): Option[] {
  const serve = command === program ? program.commands.filter((each) => each.name() === 'serve') : []
  return [command, ...serve].flatMap((each) => each.options)
}

/** The known values of a flag. */
function valuesOf({ long, argChoices }: Option): readonly string[] {
  const kind = settings.find((setting) => `--${flagOf(setting)}` === long)?.kind
  return argChoices ?? kind?.choices ?? kind?.offered ?? []
}

import { readFile } from 'node:fs/promises'
import { RejoinError } from '@rejoin/protocol'

export const defaultConfigFile = 'rejoin.config.json'

/** The configuration file, not yet checked: the one that was named, else the usual one, if it is there. */
export async function readConfigFile(named: string | undefined): Promise<ConfigFile | undefined> {
  const name = named ?? defaultConfigFile
  let text: string
  try {
    text = await readFile(name, 'utf8')
  } catch (cause) {
    if (named === undefined && (cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new RejoinError(`Cannot read ${name}: ${reasonOf(cause as NodeJS.ErrnoException)}. Name a JSON file.`, {
      code: 'invalid-option',
      cause,
    })
  }
  const content = parse(name, text)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new RejoinError(`${name} holds no object. Write settings as {"port": 4747}.`, { code: 'invalid-option' })
  }
  return { name, content }
}

export interface ConfigFile {
  readonly name: string
  readonly content: object
}

function parse(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // Not the parser's own words, and not as the cause: they quote the file, and there may be secrets in it.
    const line = lineOf(text, String(cause))
    throw new RejoinError(`${name} is not JSON${line === undefined ? '' : `: see line ${line}`}.`, {
      code: 'invalid-option',
    })
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EISDIR') return 'it is a folder'
  return code === 'EACCES' ? 'this user may not' : message
}

/** The line that the parser complains about: it names a position, or else quotes the ten characters around it. */
function lineOf(text: string, complaint: string): number | undefined {
  const position = /at position (\d+)/.exec(complaint)?.[1]
  const quoted = /, \.\.\."([\s\S]+?)"(?:\.\.\.)? is not valid JSON$/.exec(complaint)?.[1]
  if (complaint.includes('end of JSON input')) return linesIn(text)
  if (position !== undefined) return linesIn(text.slice(0, Number(position)))
  return quoted === undefined ? undefined : linesIn(text.slice(0, text.indexOf(quoted) + 10))
}

function linesIn(text: string): number {
  return text.trimEnd().split('\n').length
}

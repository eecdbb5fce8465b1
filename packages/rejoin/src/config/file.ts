import { readFile } from 'node:fs/promises'
import { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../errors.ts'
import { jsonMistake } from './json-mistake.ts'

export const defaultConfigFile = 'rejoin.config.json'

/** Reads the configuration file that was named, else `rejoin.config.json` if it exists. The settings are not checked yet. */
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
  const content = await parseSettings(name, text)
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw invalidOption(`${name} holds no object. Write settings as {"port": 4747}.`)
  }
  return { name, content }
}

export interface ConfigFile {
  readonly name: string
  readonly content: object
}

async function parseSettings(name: string, text: string): Promise<unknown> {
  try {
    return JSON.parse(text)
  } catch {
    // The error of `JSON.parse` quotes the file, which may hold secrets. So the error is neither shown nor passed on.
    throw invalidOption(`${name} is not JSON: ${await jsonMistake(text)}.`)
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EISDIR') return 'it is a folder'
  return code === 'EACCES' ? 'this user may not' : message
}

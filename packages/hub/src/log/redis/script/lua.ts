import { readFileSync } from 'node:fs'

/**
 * The Lua files beside this one, in the order in which they make up the script: each uses what the files before it define. The
 * build replaces this module by one that holds the texts (scripts/lua.js), so that a bundle of the hub has them.
 */
export const lua: readonly string[] = [
  read('./common.lua'),
  read('./budget.lua'),
  read('./append.lua'),
  read('./read.lua'),
  read('./upkeep.lua'),
  read('./dispatch.lua'),
]

function read(file: string): string {
  return readFileSync(new URL(file, import.meta.url), 'utf8')
}

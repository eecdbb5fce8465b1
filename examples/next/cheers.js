import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** The state that pages load: how often somebody has cheered. A file stands for your database. */
export function countCheers() {
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
}

export function addCheer() {
  const total = countCheers() + 1
  writeFileSync(file, String(total))
  return total
}

const file = './.cheers'

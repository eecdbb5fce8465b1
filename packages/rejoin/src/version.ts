import { readFileSync } from 'node:fs'

const packageJson = new URL('../package.json', import.meta.url)

export const version: string = JSON.parse(readFileSync(packageJson, 'utf8')).version

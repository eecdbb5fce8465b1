import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { run } from '../../support/fake-process.ts'

test('bash completes commands, those below them, and the flags of each', async () => {
  expect(await completed('rejoin', 'mi')).toEqual(['migrate'])
  expect(await completed('rejoin', 'token', '')).toEqual(expect.arrayContaining(['mint', 'explain']))
  expect(await completed('rejoin', 'token', 'mint', '--sub')).toEqual(['--subject', '--subscribe'])
  expect(await completed('rejoin', 'drain', '--ann')).toEqual(['--announce'])
  expect(await completed('rejoin', 'tail', 'orders/42', '--js')).toEqual(['--json'])
})

test('the flags of serve are completed with and without its name', async () => {
  expect(await completed('rejoin', 'serve', '--admin-p')).toEqual(['--admin-port'])
  expect(await completed('rejoin', '--admin-p')).toEqual(['--admin-port'])
})

test('the values of a flag and of an argument are completed where they are known', async () => {
  expect(await completed('rejoin', 'completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh']))
  expect(await completed('rejoin', 'migrate', 'ids', 'uu')).toEqual(['uuidv7'])
  expect(await completed('rejoin', 'serve', '--log', '')).toEqual(['lmdb', 'memory'])
  expect(await completed('rejoin', 'serve', '--port', '4800', '--durability', 'd')).toEqual(['disk'])
  expect(await completed('rejoin', '--log-level', 'w')).toEqual(['warn'])
  expect(await completed('rejoin', 'doctor', 'hub.example', '--proxy', 'ng')).toEqual(['nginx'])
  expect(await completed('rejoin', 'serve', '--log', 'memory', '--por')).toEqual(['--port'])
})

test('another shell is rejected with those there are', async () => {
  const { exitCode, stderr } = await run(['completion', 'tcsh'])
  expect(exitCode).not.toBe(0)
  expect(stderr).toContain('bash, zsh')
})

/** What bash offers for the last of the words. */
async function completed(...words: string[]): Promise<string[]> {
  const { stdout } = await run(['completion', 'bash'])
  const line = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _rejoin`
  const offered = execFileSync('bash', ['-c', `${stdout}\n${line}\nprintf '%s\\n' "\${COMPREPLY[@]}"`], {
    encoding: 'utf8',
  })
  return offered.split('\n').filter(Boolean)
}

import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { inRepository } from '../../support/proxies/kinds.ts'
import { readText } from '../../support/repository.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

// The proxies as Debian installs them, with the site that Debian ships. They run in namespaces of their own, on a copy of /etc, with a
// server on the port of the hub that answers every request with "the hub".

const whyNot = whyNoMounts()

test.skipIf(whyNot).each(['rejoin', 'two-hubs'])(
  'nginx answers for every name with the hub, once %s.conf is where it says, beside the site of Debian',
  async (file) => {
    const path = /(\/etc\/nginx\/\S+\.conf)/.exec(readText(`deploy/nginx/${file}.conf`))?.[1]
    expect(
      await answersWith(`cp ${inRepository(`deploy/nginx/${file}.conf`)} ${path} && nginx`, 'nginx -s stop'),
    ).toEqual(hubs)
  },
)

test.skipIf(whyNot).each(['rejoin', 'two-hubs'])(
  'Apache answers for every name with the hub, once %s.conf is where it says, and its commands were run',
  async (file) => {
    const text = readText(`deploy/apache/${file}.conf`)
    const [site, away] = [/(\/etc\/\S+\.conf)/, /(\/etc\/\S+\.asis)/].map((path) => path.exec(text)?.[1])
    const commands = [...text.matchAll(/^# {3}(a2.*)$/gm)].map(([, command]) => command)
    const start = [
      `cp ${inRepository(`deploy/apache/${file}.conf`)} ${site}`,
      `cp ${inRepository('deploy/apache/away.asis')} ${away}`,
      ...commands,
      'apache2ctl start',
    ]
    expect(await answersWith(start.join(' && '), 'apache2ctl stop')).toEqual(hubs)
  },
)

const names = ['hub.example', '127.0.0.1', 'localhost:80']
const hubs = names.map(() => 'the hub')

/** What a proxy that was installed by commands answers to each name. */
async function answersWith(install: string, stop: string): Promise<string[]> {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  mkdirSync(join(folder, 'run'))
  const script = `set -e
    ip link set lo up
    cp -a /etc ${folder}/etc && mount --bind ${folder}/etc /etc
    mount -t tmpfs tmpfs /run && mkdir -p /run/lock /run/apache2
    printf '127.0.0.1 localhost hub1 hub2\\n' > /etc/hosts
    ${process.execPath} -e "require('http').createServer((_, it) => it.end('the hub\\\\n')).listen(4747)" & hub=$!
    trap 'kill $hub; ${stop}' EXIT
    until curl -s -o /dev/null http://127.0.0.1:4747/; do sleep 0.1; done
    { ${install}; } >&2
    for name in ${names.join(' ')}; do
      curl -s --retry 20 --retry-connrefused --retry-delay 1 -H "Host: $name" http://127.0.0.1/publish/demo | head -1
    done`
  const { stdout } = await promisify(execFile)('unshare', ['--net', '--mount', 'bash', '-c', script])
  return stdout.trim().split('\n')
}

/** Why there can be no namespaces here; false when there can. */
function whyNoMounts(): string | false {
  try {
    execFileSync('unshare', ['--net', '--mount', 'true'], { stdio: 'pipe' })
    return false
  } catch (error) {
    return (error as Error).message
  }
}

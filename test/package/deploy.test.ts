import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { serve } from 'rejoin'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { program, root } from '../support/paths.ts'
import { freePort } from '../support/proxies/proxy.ts'
import { readText, trackedFiles } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const compose = parse(readText('deploy/compose/compose.yaml'), { merge: true }) as Compose
const dockerfile = dockerSteps(readText('deploy/docker/Dockerfile'))
const manifests = { 'lmdb.yaml': documents('lmdb.yaml'), 'redis.yaml': documents('redis.yaml') }
const rules = '[{"secret":"a secret of the tests, of 32 characters or more"}]'
const fromSecrets = {
  REJOIN_ACCESS_JWT: rules,
  REJOIN_ADMIN_TOKEN: 'a-token-of-the-tests',
  REJOIN_LOG: 'redis://redis:6379',
}

describe('every variable that a file sets is a setting, and the program takes its value:', () => {
  const environments: [string, Record<string, string>][] = [
    ['compose.yaml', { ...imageEnvironment(), ...compose.services.hub1?.environment, REJOIN_ACCESS_JWT: rules }],
    ['Dockerfile', { ...imageEnvironment(), REJOIN_ACCESS_JWT: rules }],
    ...Object.entries(manifests).map(([file, found]): [string, Record<string, string>] => {
      const { env } = containerOf(found)
      const secrets = [...readText(`deploy/kubernetes/${file}`).matchAll(/--from-literal=(\w+)=/g)].map(
        ([, name]) => name,
      )
      const fromSecret = Object.entries(fromSecrets).filter(([name]) => secrets.includes(name))
      return [
        file,
        {
          ...imageEnvironment(),
          ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
          ...Object.fromEntries(fromSecret),
        },
      ]
    }),
  ]
  test.each(environments)('%s', async (_file, environment) => {
    const set = Object.entries(environment).filter(([name]) => name.startsWith('REJOIN_'))
    const { origins, stderr } = await settingsWith([], Object.fromEntries(set))
    expect(stderr).toBe('')
    expect(origins).toEqual(expect.arrayContaining(set.map(([name]) => name)))
  })
})

test('Kubernetes does not set REJOIN_PORT to an address of the Service, with which no hub starts', async () => {
  for (const found of Object.values(manifests)) {
    const service = found.find(({ kind }) => kind === 'Service')?.metadata.name ?? ''
    const links = { [`${service.toUpperCase()}_PORT`]: 'tcp://10.96.12.7:80' }
    await expect(settingsWith([], links)).rejects.toThrow('enableServiceLinks: false')
    expect(podOf(found).enableServiceLinks).toBe(false)
  }
})

test('the flags of the systemd unit for two hubs are flags of the program', async () => {
  const [, flags = ''] =
    /^ExecStart=\/usr\/bin\/rejoin serve (.*)$/m.exec(readText('deploy/systemd/rejoin@.service')) ?? []
  expect(flags).toBe('--config /etc/rejoin/rejoin.config.json --port %i')
  const { origins } = await settingsWith(['--port', '4749'], {})
  expect(origins).toContain('--port')
})

test('the flags of the systemd unit are flags of the program', async () => {
  const unit = readText('deploy/systemd/rejoin.service')
  const [, flags = ''] = /^ExecStart=\/usr\/bin\/rejoin serve (.*)$/m.exec(unit) ?? []
  const [, file, , folder] = flags.split(' ')
  expect(flags).toBe(`--config ${file} --data ${folder}`)
  expect(unit).toContain(`StateDirectory=${folder?.replace('/var/lib/', '')}`)
  const { origins } = await settingsWith(['--data', folder ?? ''], {})
  expect(origins).toContain('--data')
})

test('flags that configurations and guides tell to set exist', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'serve', '--help'])
  const files = [...trackedFiles('deploy/**'), 'docs/guides/proxies.md', 'docs/guides/deployment.md']
  const told = files.flatMap((file) =>
    [...readText(file).matchAll(/(?:hub with|rejoin serve) (--[a-z-]+)/g)].map(([, flag]) => flag),
  )
  expect(told.length).toBeGreaterThan(4)
  for (const flag of new Set(told)) expect(stdout).toContain(`  ${flag}`)
})

test('every path that is asked for health is answered by the program, on its default port', async () => {
  const { url, close } = await serve({ port: 0 })
  onTestFinished(() => close())
  const probes = Object.values(manifests).flatMap((found) => {
    const { startupProbe, livenessProbe, readinessProbe, ports } = containerOf(found)
    expect(ports).toEqual([{ name: 'http', containerPort: 4747 }])
    expect(livenessProbe.httpGet.path).not.toBe(readinessProbe.httpGet.path)
    return [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path)
  })
  const written = ['deploy/docker/Dockerfile', 'deploy/haproxy/two-hubs.cfg'].map(
    (file) => /\/(?:readyz|healthz)/.exec(readText(file))?.[0],
  )
  for (const path of new Set([...probes, ...written])) expect((await fetch(`${url}${path}`)).status).toBe(200)
  expect(stepOf('EXPOSE')).toBe('4747')
})

describe('a stop has time to drain', () => {
  test.each(Object.entries(manifests))('in %s', (_file, found) => {
    const { env, lifecycle } = containerOf(found)
    const drainMs = Number(env.find(({ name }) => name === 'REJOIN_DRAIN_MS')?.value)
    const [, pause] = lifecycle.preStop.exec.command
    expect(podOf(found).terminationGracePeriodSeconds).toBeGreaterThan(Number(pause) + drainMs / 1000 + 3)
  })

  test('in compose.yaml', () => {
    const { environment, stop_grace_period } = compose.services.hub1 ?? {}
    expect(Number.parseInt(stop_grace_period ?? '', 10)).toBeGreaterThan(
      Number(environment?.REJOIN_DRAIN_MS) / 1000 + 3,
    )
  })
})

describe('Kubernetes', () => {
  test('runs one hub on a log of its own, with a volume that the log is on', () => {
    const hub = manifests['lmdb.yaml'].find(({ kind }) => kind === 'StatefulSet')
    expect(hub?.spec.replicas).toBe(1)
    const { env, volumeMounts } = containerOf(manifests['lmdb.yaml'])
    expect(volumeMounts).toEqual([{ name: hub?.spec.volumeClaimTemplates?.[0]?.metadata.name, mountPath: '/data' }])
    expect(env).toContainEqual({ name: 'REJOIN_DATA', value: '/data' })
  })

  test('never stops all hubs of one Redis at once', () => {
    const [, hubs, budget] = manifests['redis.yaml']
    expect(hubs?.spec.replicas).toBeGreaterThan(1)
    expect(hubs?.spec.strategy?.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    expect(budget).toMatchObject({ kind: 'PodDisruptionBudget', spec: { maxUnavailable: 1 } })
  })

  test.each(Object.entries(manifests))(
    'finds the pods of %s by their label, and runs them without root',
    (_file, found) => {
      const labels = found.find(({ spec }) => spec.template)?.spec.template?.metadata.labels
      for (const { spec } of found) {
        expect('matchLabels' in spec.selector ? spec.selector.matchLabels : spec.selector).toEqual(labels)
      }
      expect(podOf(found).securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
    },
  )
})

describe('the image', () => {
  test('is built in stages, each from an earlier one', () => {
    const stages = dockerfile.filter(([step]) => step === 'FROM').map(([, rest]) => rest.split(' AS ')[1])
    expect(stages).toEqual(['build', 'install', undefined])
    const used = dockerfile.flatMap(([step, rest]) => (step === 'COPY' ? (/--from=(\w+)/.exec(rest)?.[1] ?? []) : []))
    expect(used).toEqual(['build', 'install'])
  })

  test('runs the program that the package brings, without root', () => {
    const last = dockerfile.slice(dockerfile.findLastIndex(([step]) => step === 'FROM')).map(([step]) => step)
    expect(stepOf('USER')).toBe('node')
    expect(last.indexOf('USER')).toBeGreaterThan(last.indexOf('RUN'))
    const [, path = ''] = JSON.parse(stepOf('ENTRYPOINT')) as string[]
    expect(existsSync(join(root, path.replace('node_modules/rejoin/', 'packages/rejoin/')))).toBe(true)
    expect(JSON.parse(stepOf('CMD'))).toEqual(['serve'])
  })
})

describe('compose', () => {
  test('names services, files and volumes that are there', () => {
    const names = Object.keys(compose.services)
    expect(names).toEqual(['hub1', 'hub2', 'redis', 'nginx'])
    for (const { depends_on = {}, build, volumes = [] } of Object.values(compose.services)) {
      expect(names).toEqual(expect.arrayContaining(Object.keys(depends_on)))
      if (build) expect(existsSync(join(root, 'deploy/compose', build.context, build.dockerfile))).toBe(true)
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        const isThere = source.startsWith('.')
          ? existsSync(join(root, 'deploy/compose', source))
          : source in compose.volumes
        expect(isThere, source).toBe(true)
      }
    }
  })

  test('gives both hubs an address that stays when they are created again, because nginx looks their names up once', () => {
    const { hub1, hub2, nginx } = compose.services
    expect(nginx?.volumes).toEqual(['../nginx/two-hubs.conf:/etc/nginx/conf.d/default.conf:ro'])
    const named = [...readText('deploy/nginx/two-hubs.conf').matchAll(/^ {4}server (\w+):4747 /gm)].map(
      ([, name]) => name,
    )
    expect(named).toEqual(['hub1', 'hub2'])
    const addresses = [hub1, hub2].map((hub) => hub?.networks?.default.ipv4_address)
    expect(new Set(addresses).size).toBe(2)
    for (const address of addresses) expect(address).toMatch(/^172\.30\.47\.\d+$/)
    expect(compose.networks.default.ipam.config).toEqual([{ subnet: '172.30.47.0/24' }])
  })

  test('is started, and read from, by the commands of the guide as they are pasted, and again with the same secret', async () => {
    const guide = readText('docs/guides/deployment.md')
    const [, commands = ''] = /^## Compose[^\n]*\n+```sh\n([\s\S]*?)^```$/m.exec(guide) ?? []
    const port = await freePort()
    const { REJOIN_ACCESS_JWT: _, REJOIN_LOG: __, ...environment } = compose.services.hub1?.environment ?? {}
    const given = { ...imageEnvironment(), ...environment, REJOIN_HOST: '127.0.0.1', REJOIN_PORT: `${port}` }
    const { folder, remove } = temporaryFolder()
    onTestFinished(remove)
    mkdirSync(join(folder, 'deploy/compose'), { recursive: true })
    // Stands for the engine: `up` starts the program with the environment of hub1, on a log in memory, and `exec` runs the program.
    // Compose reads .env in much the same way as a shell.
    const engine = `
      docker() {
        set -a; . deploy/compose/.env; set +a
        case "$*" in
          *' up '*) ${quoted(process.execPath)} ${quoted(program)} serve --log memory > /dev/null & hub=$!
            trap 'kill $hub; wait $hub' EXIT
            until curl -sf -o /dev/null http://127.0.0.1:${port}/readyz; do sleep 0.1; done ;;
          *' exec -T hub1 node node_modules/rejoin/bin/rejoin.js '*)
            ${quoted(process.execPath)} ${quoted(program)} "\${@:$(($(printf '%s\n' "$@" | grep -n rejoin.js | cut -d: -f1) + 1))}" ;;
          *) return 1 ;;
        esac
      }`
    const pasted = commands
      .replaceAll('http://localhost:8080', `http://127.0.0.1:${port}`)
      .replaceAll('curl -N', `curl -sN -m 1 -o /dev/null -w '%{http_code}\\n'`)
      .replaceAll('curl -d', `curl -s -o /dev/null -w '%{http_code}\\n' -d`)
    // curl -N ends by its own deadline, with a status other than 0.
    const script = `${engine}\n${pasted}\ntrue`
    const { PATH = '' } = process.env
    const secrets: string[] = []
    for (let deployment = 1; deployment <= 2; deployment += 1) {
      const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { PATH, ...given }, cwd: folder })
      expect(stdout.trim().split('\n')).toEqual(['201', '200'])
      secrets.push(readFileSync(join(folder, 'deploy/compose/.env'), 'utf8'))
    }
    expect(secrets[0]).toMatch(/^REJOIN_ACCESS_JWT='\[\{"secret":"[0-9a-f]{64}"\}\]'\n$/)
    expect(secrets[1]).toBe(secrets[0])
  })

  test('starts a Redis that neither forgets nor evicts', () => {
    expect(compose.services.redis?.command?.join(' ')).toBe(
      'redis-server --appendonly yes --maxmemory-policy noeviction',
    )
  })
})

test('every number for the system has its reason above it', () => {
  const lines = readText('deploy/sysctl/90-rejoin.conf').split('\n')
  const settings = lines.filter((line) => /^-?net\./.test(line))
  expect(settings.length).toBeGreaterThan(5)
  for (const setting of settings) expect(lines[lines.indexOf(setting) - 1]).toMatch(/^# /)
})

test('every file of deploy/ is told of in the guides', () => {
  const guides = ['proxies', 'deployment', 'two-hubs', 'observe']
    .map((name) => readText(`docs/guides/${name}.md`))
    .join('\n')
  const files = trackedFiles('deploy/**').filter(
    (file) => !file.endsWith('.dockerignore') && !file.endsWith('.test.yml'),
  )
  expect(files.filter((file) => !guides.includes(file) && !guides.includes(dirname(file)))).toEqual([])
})

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: { readonly default: { readonly ipam: { readonly config: unknown } } }
  readonly volumes: Readonly<Record<string, unknown>>
}

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly volumes?: readonly string[]
  readonly command?: readonly string[]
  readonly stop_grace_period?: string
  readonly networks?: { readonly default: { readonly ipv4_address: string } }
}

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly selector: Readonly<Record<string, unknown>>
    readonly replicas?: number
    readonly strategy?: { readonly rollingUpdate: unknown }
    readonly template?: { readonly metadata: { readonly labels: unknown }; readonly spec: Pod }
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
  }
}

interface Pod {
  readonly terminationGracePeriodSeconds: number
  readonly enableServiceLinks?: boolean
  readonly securityContext: unknown
  readonly containers: readonly Container[]
}

interface Probe {
  readonly httpGet: { readonly path: string }
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly ports: unknown
  readonly volumeMounts?: unknown
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
}

function documents(file: string): Manifest[] {
  return parseAllDocuments(readText(`deploy/kubernetes/${file}`)).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() as Manifest
  })
}

function podOf(found: readonly Manifest[]): Pod {
  return found.find(({ spec }) => spec.template)?.spec.template?.spec as Pod
}

function containerOf(found: readonly Manifest[]): Container {
  return podOf(found).containers[0] as Container
}

/** The steps of a Dockerfile, its comments left out and its continued lines joined. */
function dockerSteps(text: string): [step: string, rest: string][] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  return lines.filter(Boolean).map((line) => [line.split(' ')[0] ?? '', line.slice(line.indexOf(' ') + 1)])
}

function stepOf(name: string): string {
  return dockerfile.findLast(([step]) => step === name)?.[1] ?? ''
}

function imageEnvironment(): Record<string, string> {
  return Object.fromEntries(
    stepOf('ENV')
      .split(' ')
      .map((pair) => pair.split('=')),
  )
}

/** A word of a shell. */
function quoted(text: string): string {
  return `'${text}'`
}

/** Where the program gets each of its settings from. */
async function settingsWith(flags: readonly string[], env: Readonly<Record<string, string>>) {
  const { PATH = '' } = process.env
  const args = [program, 'config', '--json', ...flags]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env: { PATH, ...env }, cwd: '/' })
  const origins = stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { origin: string }).origin)
  return { origins, stderr }
}

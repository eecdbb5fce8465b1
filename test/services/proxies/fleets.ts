import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { parse, parseAllDocuments } from 'yaml'
import { program } from '../../support/paths.ts'
import { startProgram } from '../../support/program.ts'
import { type ProxyKindName, proxyKinds } from '../../support/proxies/kinds.ts'
import { freePort, shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'
import { startRedis } from '../../support/redis-server.ts'
import { readText } from '../../support/repository.ts'
import { openRoundRobin } from '../../support/round-robin.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { addressesIn } from './crowd.ts'

/** Two hubs on one Redis, with what stands in front of them, as one of our guides has an operator set them up. */
export interface Fleet {
  readonly url: string
  /** The address that a reader comes from: each has its own, because limits that count by address are not what is tested. */
  addressOf(reader: number): string
  /** Replaces both hubs, one right after the other, with the commands that the guide prints. */
  replaceHubs(): Promise<void>
  stop(): Promise<void>
}

/** A proxy, and two units of systemd. */
export async function startUnits(name: ProxyKindName): Promise<Fleet> {
  const redis = await startRedis()
  const { folder, remove } = temporaryFolder()
  const ports = [await freePort(), await freePort()] as const
  const config = join(folder, 'rejoin.config.json')
  writeFileSync(config, JSON.stringify({ log: `redis://127.0.0.1:${redis.port}`, trustProxy: true }))
  const unit = readText('deploy/systemd/rejoin@.service')
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  const [, stopSeconds = ''] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
  const start = command
    .replace('/usr/bin/rejoin', `${quoted(process.execPath)} ${quoted(program)}`)
    .replace('/etc/rejoin/rejoin.config.json', quoted(config))
    .replace('%i', '"$1"')
  const supervisor = await startSupervisor(
    `pids=()
    start() { ${start} > /dev/null & pids[$1]=$!; }
    stop() { ${stopping(stopSeconds)}; }
    ready() { eventually curl -sf -o /dev/null http://127.0.0.1:$1/readyz; }
    systemctl() { local port=\${2#rejoin@}; stop $port; start $port; }
    for port in ${ports.join(' ')}; do start $port; ready $port; done`,
    commandsOf('two-hubs.md', 'systemctl restart').replace('4747 4749', ports.join(' ')),
    `for port in ${ports.join(' ')}; do stop $port; done 2> /dev/null`,
  )
  const proxy = await startProxy(name, ports, shippedConfiguration(name, 'twoHubs'))
  const network = 1 + Object.keys(proxyKinds).indexOf(name)
  return {
    url: proxy.url,
    addressOf: addressesIn(network),
    replaceHubs: supervisor.replaceHubs,
    async stop() {
      await proxy.stop()
      await supervisor.stop()
      await redis.remove()
      remove()
    },
  }
}

/**
 * The containers of our Compose file, without an engine: each hub is in a network namespace of its own, at its address, which is gone
 * while the container is created anew. nginx and Redis are in a third one, from where a link leads to the test.
 */
export async function startCompose(): Promise<Fleet> {
  const { services } = parse(readText('deploy/compose/compose.yaml'), { merge: true }) as Compose
  const name = `rj${process.pid}c`
  const { folder, remove } = temporaryFolder()
  const [inside, outside] = ['10.214.255.2', '10.214.255.1']
  const hubs = (['hub1', 'hub2'] as const).map((hub) => ({ hub, ...services[hub] }))
  const of = (pick: (hub: (typeof hubs)[number]) => string) =>
    hubs.map((hub) => `[${hub.hub}]=${quoted(pick(hub))}`).join(' ')
  const environment = Object.entries({ ...imageEnvironment(), ...hubs[0]?.environment })
    .filter(([key]) => key !== 'REJOIN_ACCESS_JWT' && key !== 'NODE_ENV' && key !== 'REJOIN_DATA')
    .map(([key, value]) => `${key}=${quoted(value.replace('redis:6379', `${gateway}:6379`))}`)
  writeFileSync(join(folder, 'rejoin.config.json'), '{"access":{"anonymous":{"subscribe":["*"],"publish":["*"]}}}')
  const configuration = Object.entries(addresses(hubs)).reduce(
    (text, [hub, address]) => text.replaceAll(`server ${hub}:4747`, `server ${address}:4747`),
    shippedConfiguration('nginx', 'twoHubs').replace('listen 80', `listen ${inside}:80`),
  )
  const site = { folder, port: 80, adminPort: 0, configuration }
  proxyKinds.nginx.install(site)
  const supervisor = await startSupervisor(
    `declare -A pids addresses=(${of(({ networks }) => networks.default.ipv4_address)})
    ready() { eventually ip netns exec ${name}$1 curl -sf -o /dev/null http://127.0.0.1:4747/readyz; }
    start() {
      ip netns add ${name}$1
      ip link add $1 netns ${name} type veth peer name eth0 netns ${name}$1
      ip -n ${name} link set $1 master containers up
      ip -n ${name}$1 address add \${addresses[$1]}/24 dev eth0
      ip -n ${name}$1 link set eth0 up
      ip -n ${name}$1 link set lo up
      ip netns exec ${name}$1 env ${environment.join(' ')} ${quoted(process.execPath)} ${quoted(program)} serve \\
        --config ${quoted(join(folder, 'rejoin.config.json'))} > /dev/null & pids[$1]=$!
    }
    remove() { ${stopping(`${Number.parseInt(hubs[0]?.stop_grace_period ?? '', 10)}`)}; ip netns delete ${name}$1; }
    docker() {
      case "$*" in
        *' build') ;;
        *' up --detach --wait --no-deps '*) remove "\${@: -1}"; start "\${@: -1}"; ready "\${@: -1}" ;;
        *) return 1 ;;
      esac
    }
    ip netns add ${name}
    ip -n ${name} link set lo up
    ip -n ${name} link add containers type bridge
    ip -n ${name} address add ${gateway}/24 dev containers
    ip -n ${name} link set containers up
    ip link add ${name}o type veth peer name test netns ${name}
    ip address add ${outside}/16 dev ${name}o
    ip link set ${name}o up
    ip route add local 10.214.0.0/17 dev ${name}o
    ip -n ${name} address add ${inside}/16 dev test
    ip -n ${name} link set test up
    ip netns exec ${name} redis-server --bind ${gateway} --port 6379 --protected-mode no --save '' --dir ${quoted(folder)} > /dev/null & redis=$!
    eventually ip netns exec ${name} redis-cli -h ${gateway} ping > /dev/null
    for hub in hub1 hub2; do start $hub; ready $hub; done
    ip netns exec ${name} ${proxyKinds.nginx.command(site).map(quoted).join(' ')} & nginx=$!
    eventually curl -sf -m 5 -o /dev/null http://${inside}/healthz`,
    commandsOf('two-hubs.md', 'docker compose'),
    `{ kill $nginx; remove hub1; remove hub2; kill $redis; wait; ip netns delete ${name}; ip link delete ${name}o; } 2> /dev/null`,
  )
  return {
    url: `http://${inside}`,
    addressOf: (reader) => `10.214.${1 + Math.floor(reader / 250)}.${1 + (reader % 250)}`,
    replaceHubs: supervisor.replaceHubs,
    async stop() {
      await supervisor.stop()
      remove()
    },
  }
}

/**
 * The Deployment of our manifest, without a cluster: pods come and go with its pauses and periods. A Service is the choice of a pod for
 * each connection. The nodes learn late that a pod goes, and lead new connections to it until then.
 */
export async function startDeployment(): Promise<Fleet> {
  const redis = await startRedis()
  const [, deployment] = parseAllDocuments(readText('deploy/kubernetes/redis.yaml')).map(
    (document) => document.toJS() as Deployment,
  )
  const { replicas, minReadySeconds, template } = (deployment as Deployment).spec
  const [container] = template.spec.containers
  const { env, lifecycle, readinessProbe } = container
  const environment = {
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
    REJOIN_LOG: `redis://127.0.0.1:${redis.port}`,
  }
  const service = await openRoundRobin([])

  async function startPod(): Promise<Pod> {
    const port = await freePort()
    const hub = await startProgram({ port, env: environment })
    while ((await fetch(`http://127.0.0.1:${port}${readinessProbe.httpGet.path}`)).status !== 200) await setTimeout(100)
    service.add(port)
    return { port, hub }
  }

  async function removePod({ port, hub }: Pod): Promise<void> {
    const [, pause] = lifecycle.preStop.exec.command
    const isForgotten = setTimeout(learningMs).then(() => service.remove(port))
    await setTimeout(Number(pause) * 1000)
    const late = globalThis.setTimeout(
      () => void hub.kill(),
      (template.spec.terminationGracePeriodSeconds - Number(pause)) * 1000,
    )
    await Promise.all([hub.stop(), isForgotten])
    clearTimeout(late)
  }

  const pods: Pod[] = []
  for (let count = 0; count < replicas; count += 1) pods.push(await startPod())
  return {
    url: service.url,
    addressOf: () => '127.0.0.1',
    async replaceHubs() {
      const removals: Promise<void>[] = []
      for (let count = 0; count < replicas; count += 1) {
        pods.push(await startPod())
        await setTimeout(minReadySeconds * 1000)
        removals.push(removePod(pods.shift() as Pod))
      }
      await Promise.all(removals)
    },
    async stop() {
      service.close()
      await Promise.all(pods.map(({ hub }) => hub.kill()))
      await redis.remove()
    },
  }
}

// A second or two on a small cluster; the pause of preStop has to be longer.
const learningMs = 3000

interface Pod {
  readonly port: number
  readonly hub: ServerProcess
}

interface Deployment {
  readonly spec: {
    readonly replicas: number
    readonly minReadySeconds: number
    readonly template: {
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] }
    }
  }
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
}

const gateway = '172.30.47.1'

interface Compose {
  readonly services: Readonly<Record<'hub1' | 'hub2', ComposeHub>>
}

interface ComposeHub {
  readonly environment: Readonly<Record<string, string>>
  readonly stop_grace_period: string
  readonly networks: { readonly default: { readonly ipv4_address: string } }
}

function addresses(hubs: readonly ({ readonly hub: string } & ComposeHub)[]): Record<string, string> {
  return Object.fromEntries(hubs.map(({ hub, networks }) => [hub, networks.default.ipv4_address]))
}

function imageEnvironment(): Record<string, string> {
  const [, pairs = ''] = /^ENV (.*)$/m.exec(readText('deploy/docker/Dockerfile')) ?? []
  return Object.fromEntries(pairs.split(' ').map((pair) => pair.split('=') as [string, string]))
}

/** The commands of a page that contain a text, as they are pasted. */
function commandsOf(page: string, text: string): string {
  const found = [...readText(`docs/guides/${page}`).matchAll(/^```sh\n([\s\S]*?)^```$/gm)].find(([, code]) =>
    code?.includes(text),
  )
  if (!found) throw new Error(`${page} has no commands with ${text}.`)
  return found[1] as string
}

/** Repeats a command until it succeeds, for half a minute at most. */
const eventually = `eventually() {
  local end=$((SECONDS + 30))
  until "$@"; do
    if [ $SECONDS -gt $end ]; then echo "never: $*" >&2; exit 1; fi
    sleep 0.1
  done
}`

/** Ends the process of `$1` as a supervisor does: with SIGKILL when SIGTERM takes too long. */
function stopping(seconds: string): string {
  return `local pid=\${pids[$1]}; kill $pid
    (sleep ${seconds}; kill -9 $pid) > /dev/null 2>&1 & local late=$!
    wait $pid; kill $late 2> /dev/null`
}

interface Supervisor {
  replaceHubs(): Promise<void>
  stop(): Promise<void>
}

/** A shell that is the parent of the hubs, as systemd or an engine is, and does each step when it is asked. */
async function startSupervisor(start: string, replace: string, stop: string): Promise<Supervisor> {
  // Also when a step fails, or the test goes without a word.
  const script = `${eventually}\ntrap ${quoted(stop)} EXIT\n${start}\necho ready\nread && {\n${replace}\necho ready\nread\n}\n`
  const env = { REJOIN_RETRY_MS: '500', ...process.env }
  const shell = spawn('bash', ['-c', script], { stdio: 'pipe', env })
  const lines = createInterface({ input: shell.stdout })
  let said = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })

  async function ready(): Promise<void> {
    const [line] = await Promise.race([once(lines, 'line'), once(shell, 'exit')])
    if (line !== 'ready') throw new Error(`The supervisor ended, or said ${line}. ${said}`)
  }

  await ready()
  return {
    async replaceHubs() {
      const isDone = ready()
      shell.stdin.write('\n')
      await isDone
    },
    async stop() {
      const isOver = once(shell, 'exit')
      shell.stdin.end()
      await isOver
      for (const stream of [shell.stdout, shell.stderr]) stream.destroy()
    },
  }
}

/** A word of a shell. */
function quoted(text: string): string {
  return `'${text}'`
}

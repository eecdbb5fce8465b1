import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../paths.ts'

/** A program of Debian that stands in front of a hub. */
export interface ProxyKind {
  /** Where its configuration is in this repository. */
  readonly shipped: string
  /** Where its configuration for two hubs on one Redis is. */
  readonly twoHubs: string
  /** What a user would write who has read only the first page of its manual. */
  readonly plain: string
  /** Puts the configuration where the program finds it, with whatever else it needs to run without touching the system. */
  install(site: Site): void
  /** How to start it in the foreground. */
  command(site: Site): readonly [string, ...string[]]
  /** How to make it read its configuration again. */
  reload: NodeJS.Signals | ((site: Site) => Promise<unknown>)
  /**
   * What the program says when it has read its configuration, at a start and at a reload.
   * @defaultValue nothing is waited for
   */
  readonly loaded?: RegExp
  /** How to ask the program whether it takes a configuration. */
  check(site: Site): readonly [string, ...string[]]
  /** How to ask for its version. */
  readonly version: readonly [string, ...string[]]
}

/** One installation, in a folder of its own. */
export interface Site {
  readonly folder: string
  /** Where it listens, on 127.0.0.1. */
  readonly port: number
  /** A second port, for programs that need one to be told what to do. */
  readonly adminPort: number
  /** The configuration, with its addresses filled in. */
  readonly configuration: string
}

const run = promisify(execFile)

// Without the optimisation that is Varnish's default, and which takes as long as all the rest of a start.
const quickCompiler = 'exec gcc -std=gnu99 -O0 -pthread -fpic -shared -Wl,-x -o %o %s'

export const proxyKinds = {
  nginx: {
    shipped: 'deploy/nginx/rejoin.conf',
    twoHubs: 'deploy/nginx/two-hubs.conf',
    plain: 'server {\n  listen 80;\n  location / { proxy_pass http://127.0.0.1:4747; }\n}\n',
    install({ folder, configuration }) {
      writeFileSync(join(folder, 'rejoin.conf'), configuration)
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      )
      writeFileSync(
        join(folder, 'nginx.conf'),
        `daemon off;\n${process.getuid?.() === 0 ? 'user root;\n' : ''}worker_processes 1;\npid ${folder}/nginx.pid;\n` +
          `error_log ${folder}/error.log;\nevents { worker_connections 1000; }\n` +
          `http {\n  access_log off;\n  ${temporary.join('\n  ')}\n  include ${folder}/rejoin.conf;\n}\n`,
      )
    },
    command: ({ folder }) => ['nginx', '-p', folder, '-c', `${folder}/nginx.conf`, '-e', `${folder}/error.log`],
    reload: 'SIGHUP',
    check: ({ folder }) => ['nginx', '-t', '-p', folder, '-c', `${folder}/nginx.conf`, '-e', `${folder}/error.log`],
    version: ['nginx', '-v'],
  },
  haproxy: {
    shipped: 'deploy/haproxy/haproxy.cfg',
    twoHubs: 'deploy/haproxy/two-hubs.cfg',
    plain:
      'defaults\n  mode http\n  timeout connect 5s\n  timeout client 50s\n  timeout server 50s\n' +
      'frontend public\n  bind :80\n  default_backend hub\nbackend hub\n  server hub1 127.0.0.1:4747\n',
    install({ folder, configuration }) {
      writeFileSync(join(folder, 'haproxy.cfg'), configuration)
    },
    command: ({ folder }) => ['haproxy', '-W', '-db', '-f', `${folder}/haproxy.cfg`],
    reload: 'SIGUSR2',
    // HAProxy executes itself anew to reload. A signal that arrives while it starts or reloads is lost.
    loaded: /Loading success/,
    check: ({ folder }) => ['haproxy', '-c', '-f', `${folder}/haproxy.cfg`],
    version: ['haproxy', '-v'],
  },
  varnish: {
    shipped: 'deploy/varnish/rejoin.vcl',
    twoHubs: 'deploy/varnish/two-hubs.vcl',
    plain: 'vcl 4.1;\nbackend hub { .host = "127.0.0.1"; .port = "4747"; }\n',
    install({ folder, configuration }) {
      writeFileSync(join(folder, 'rejoin.vcl'), configuration)
    },
    command: ({ folder, port }) => [
      ...(['varnishd', '-F', '-j', 'none', '-n', `${folder}/work`, '-a', `127.0.0.1:${port}`] as const),
      ...[
        '-f',
        `${folder}/rejoin.vcl`,
        '-s',
        'malloc,16m',
        '-p',
        'thread_pools=1',
        '-p',
        `cc_command=${quickCompiler}`,
      ],
    ],
    async reload({ folder }) {
      const admin = ['-n', `${folder}/work`]
      const name = `reloaded_${process.hrtime.bigint()}`
      await run('varnishadm', [...admin, 'vcl.load', name, `${folder}/rejoin.vcl`])
      await run('varnishadm', [...admin, 'vcl.use', name])
    },
    check: ({ folder }) => ['varnishd', '-C', '-j', 'none', '-n', `${folder}/check`, '-f', `${folder}/rejoin.vcl`],
    version: ['varnishd', '-V'],
  },
  caddy: {
    shipped: 'deploy/caddy/Caddyfile',
    twoHubs: 'deploy/caddy/two-hubs.Caddyfile',
    plain: ':80 {\n\treverse_proxy 127.0.0.1:4747\n}\n',
    install({ folder, adminPort, configuration }) {
      const ours = `{\n\tadmin 127.0.0.1:${adminPort}\n`
      const isGlobal = /^\{\n/m.test(configuration)
      const text = isGlobal ? configuration.replace(/^\{\n/m, ours) : `${ours}}\n${configuration}`
      writeFileSync(join(folder, 'Caddyfile'), text)
    },
    command: ({ folder }) => ['caddy', 'run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile'],
    reload: ({ folder, adminPort }) =>
      run('caddy', [
        ...['reload', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile'],
        ...['--address', `127.0.0.1:${adminPort}`, '--force'],
      ]),
    check: ({ folder }) => ['caddy', 'validate', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile'],
    version: ['caddy', 'version'],
  },
  apache: {
    shipped: 'deploy/apache/rejoin.conf',
    twoHubs: 'deploy/apache/two-hubs.conf',
    plain: '<VirtualHost *:80>\n  ProxyPass "/" "http://127.0.0.1:4747/"\n</VirtualHost>\n',
    install({ folder, port, configuration }) {
      mkdirSync(join(folder, 'logs'))
      writeFileSync(
        join(folder, 'rejoin.conf'),
        configuration.replaceAll('/etc/apache2/rejoin-away.asis', inRepository('deploy/apache/away.asis')),
      )
      const modules = [
        'mpm_event',
        'alias',
        'asis',
        'authz_core',
        'setenvif',
        'headers',
        'proxy',
        'proxy_http',
        'proxy_balancer',
        'lbmethod_bybusyness',
        'slotmem_shm',
        'proxy_hcheck',
        'filter',
        'deflate',
      ]
      writeFileSync(
        join(folder, 'apache.conf'),
        `ServerRoot ${folder}\nServerName localhost\nPidFile ${folder}/apache.pid\nDefaultRuntimeDir ${folder}\n` +
          `ErrorLog ${folder}/logs/error.log\n${process.getuid?.() === 0 ? 'User www-data\nGroup www-data\n' : ''}` +
          modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`).join('') +
          `Listen 127.0.0.1:${port}\nGracefulShutdownTimeout 1\nInclude ${folder}/rejoin.conf\n`,
      )
    },
    command: ({ folder }) => ['apache2', '-D', 'FOREGROUND', '-f', `${folder}/apache.conf`],
    reload: 'SIGUSR1',
    check: ({ folder }) => ['apache2', '-t', '-f', `${folder}/apache.conf`],
    version: ['apache2', '-v'],
  },
} satisfies Record<string, ProxyKind>

export type ProxyKindName = keyof typeof proxyKinds

export const proxyKindNames = Object.keys(proxyKinds) as ProxyKindName[]

/** A path in the repository. */
export function inRepository(path: string): string {
  return `${root}${path}`
}

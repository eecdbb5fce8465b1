import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * @typedef {object} Service
 * @property {string} name how it is called in a list of skips
 * @property {string[]} binaries names it goes by on the PATH; one of them is enough
 * @property {string[]} packages what Debian calls it
 * @property {string[]} tests how the paths of the test files that need it begin
 */

/** @type {Service[]} */
export const services = [
  {
    name: 'Chromium',
    binaries: ['chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium'],
    tests: ['test/browser/', 'test/services/examples/next'],
  },
  {
    name: 'Redis',
    binaries: ['redis-server'],
    packages: ['redis-server'],
    tests: ['test/services/redis/', 'test/browser/tickets'],
  },
  {
    name: 'Valkey',
    binaries: ['valkey-server'],
    packages: ['valkey-server'],
    tests: ['test/services/valkey/'],
  },
  {
    name: 'strace',
    binaries: ['strace'],
    packages: ['strace'],
    tests: ['test/services/disk/flushes'],
  },
  {
    name: 'promtool',
    binaries: ['promtool'],
    packages: ['prometheus'],
    tests: ['test/services/alerts'],
  },
  {
    name: 'a C compiler',
    binaries: ['cc'],
    packages: ['gcc', 'libc6-dev'],
    tests: ['test/services/disk/io-errors', 'test/services/redis/clock'],
  },
  {
    name: 'tmux',
    binaries: ['tmux'],
    packages: ['tmux'],
    tests: ['test/services/terminal/'],
  },
  {
    name: 'Avahi',
    binaries: ['avahi-daemon'],
    packages: ['avahi-daemon'],
    tests: ['test/services/mdns/'],
  },
  {
    name: 'ip',
    binaries: ['ip'],
    packages: ['iproute2'],
    tests: ['test/services/mdns/'],
  },
  {
    name: 'Python',
    binaries: ['python3'],
    packages: ['python3'],
    tests: ['test/services/third-party/python', 'test/services/examples/anywhere'],
  },
  {
    name: 'PHP',
    binaries: ['php'],
    packages: ['php-cli'],
    tests: ['test/services/examples/anywhere'],
  },
  {
    name: 'curl',
    binaries: ['curl'],
    packages: ['curl'],
    tests: ['test/services/examples/anywhere'],
  },
  {
    name: 'openssl',
    binaries: ['openssl'],
    packages: ['openssl'],
    tests: ['test/services/examples/anywhere'],
  },
  {
    name: 'nginx',
    binaries: ['nginx'],
    packages: ['nginx'],
    tests: ['test/services/proxies/'],
  },
  {
    name: 'HAProxy',
    binaries: ['haproxy'],
    packages: ['haproxy'],
    tests: ['test/services/proxies/'],
  },
  {
    name: 'Varnish',
    binaries: ['varnishd'],
    packages: ['varnish'],
    tests: ['test/services/proxies/'],
  },
  {
    name: 'Caddy',
    binaries: ['caddy'],
    packages: ['caddy'],
    tests: ['test/services/proxies/'],
  },
  {
    name: 'Apache',
    binaries: ['apache2'],
    packages: ['apache2'],
    tests: ['test/services/proxies/'],
  },
  {
    name: 'systemd-analyze',
    binaries: ['systemd-analyze'],
    packages: ['systemd'],
    tests: ['test/services/systemd'],
  },
]

/** Checks the script for Redis, in `npm run lint`. */
export const luacheck = { name: 'luacheck', binaries: ['luacheck'], packages: ['lua-check'], tests: [] }

/** @param {Service} service */
export function isPresent(service) {
  return executableOf(service) !== undefined
}

/**
 * The file that runs a service, undefined when it is not on the PATH.
 *
 * @param {Service} service
 */
export function executableOf(service) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return service.binaries.flatMap((binary) => folders.map((folder) => join(folder, binary))).find(isExecutable)
}

/**
 * @param {Service} service
 * @param {string} file
 */
export function isNeededBy(service, file) {
  return service.tests.some((start) => file.startsWith(start))
}

/** @param {Service[]} missing */
export function installCommand(missing) {
  return `sudo apt-get install -y ${debianPackages(missing).join(' ')}`
}

/** @param {Service[]} missing */
export function debianPackages(missing) {
  return [...new Set(missing.flatMap((service) => service.packages))]
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // Absent and not executable are the same to us.
    return false
  }
}

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
    tests: ['test/browser/'],
  },
  {
    name: 'Redis',
    binaries: ['redis-server'],
    packages: ['redis-server'],
    tests: ['test/services/redis-'],
  },
  {
    name: 'Valkey',
    binaries: ['valkey-server'],
    packages: ['valkey-server'],
    tests: ['test/services/valkey-'],
  },
  {
    name: 'strace',
    binaries: ['strace'],
    packages: ['strace'],
    tests: ['test/services/flushes'],
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
    tests: ['test/services/io-errors', 'test/services/redis-clock'],
  },
  {
    name: 'tmux',
    binaries: ['tmux'],
    packages: ['tmux'],
    tests: ['test/services/terminal'],
  },
  {
    name: 'Python',
    binaries: ['python3'],
    packages: ['python3'],
    tests: ['test/services/third-party-python', 'test/services/anywhere-example'],
  },
  {
    name: 'PHP',
    binaries: ['php'],
    packages: ['php-cli'],
    tests: ['test/services/anywhere-example'],
  },
  {
    name: 'curl',
    binaries: ['curl'],
    packages: ['curl'],
    tests: ['test/services/anywhere-example'],
  },
  {
    name: 'openssl',
    binaries: ['openssl'],
    packages: ['openssl'],
    tests: ['test/services/anywhere-example'],
  },
]

/** @param {Service} service */
export function isPresent(service) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return service.binaries.some((binary) => folders.some((folder) => isExecutable(join(folder, binary))))
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

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const isRoot = process.getuid?.() === 0

/**
 * Whether this machine may be changed without asking: a CI runner is thrown away, and root without a running systemd
 * is a container. On anybody's desk we only say what is missing.
 */
export function mayInstall() {
  const disposable = process.env.CI === 'true' || (isRoot && !existsSync('/run/systemd/system'))
  return disposable && existsSync('/usr/bin/apt-get')
}

/**
 * @param {string[]} packages
 * @returns {boolean} whether apt-get went through
 */
export function install(packages) {
  console.log(`Installing from Debian's packages: ${packages.join(' ')}`)
  const asRoot = isRoot ? [] : ['sudo', '-n']
  const [command = 'sh', ...args] = [...asRoot, 'sh', '-c', script, 'sh', ...packages]
  return spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}

// Packages of services start them right after the install. policy-rc.d with 101 forbids that; an existing one is the
// machine's own and stays. The trap also takes ours away when apt-get fails or is interrupted.
const script = `
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# What this release does not have itself may be in its backports, as Valkey is for Debian 12. They are fetched from where
# the release itself is fetched.
for package in "$@"; do
  if ! apt-cache show "$package" > /dev/null 2>&1; then
    . /etc/os-release
    site=$(apt-get indextargets --format '$(SITE)' 'Identifier: Packages' "Codename: $VERSION_CODENAME" | head -n 1)
    echo "deb $site $VERSION_CODENAME-backports main" > /etc/apt/sources.list.d/rejoin-backports.list
    apt-get -qq update
    break
  fi
done
# One that cannot be had must not keep the others away.
known=''
for package in "$@"; do
  if apt-cache show "$package" > /dev/null 2>&1; then known="$known $package"; fi
done
apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends $known
`

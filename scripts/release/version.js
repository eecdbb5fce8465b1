/**
 * @param {string | undefined} asked a version, or which of its numbers to raise
 * @param {string} current that of the packages
 * @param {string[]} tags of versions that are out
 * @returns {string}
 */
export function nextVersion(asked, current, tags) {
  const version = asked === undefined ? current : raised(asked, current)
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) {
    throw new Error(`"${asked}" is no version. Give one, such as 0.2.0, or patch, minor or major.`)
  }
  if (tags.includes(`v${version}`)) {
    throw new Error(`Version ${version} is out already. Give the next: npm run release -- minor`)
  }
  return version
}

/**
 * @param {string} asked
 * @param {string} current
 */
function raised(asked, current) {
  const [major = 0, minor = 0, patch = 0] = current.split('.').map((part) => Number.parseInt(part, 10))
  if (asked === 'major') return `${major + 1}.0.0`
  if (asked === 'minor') return `${major}.${minor + 1}.0`
  if (asked === 'patch') return `${major}.${minor}.${patch + 1}`
  return asked
}

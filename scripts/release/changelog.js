/**
 * What is unreleased becomes the section of a version, below an empty one for the next.
 * @param {string} text
 * @param {string} version
 * @param {string} date such as 2026-11-17
 */
export function withRelease(text, version, date) {
  const heading = '## Unreleased\n'
  const start = text.indexOf(heading)
  if (start < 0) throw new Error('CHANGELOG.md has no heading "## Unreleased".')
  const after = text.slice(start + heading.length)
  const [unreleased = ''] = after.split(/^## /m)
  if (!/^- /m.test(unreleased))
    throw new Error('CHANGELOG.md has nothing under "## Unreleased". Say what users will notice.')
  return `${text.slice(0, start)}${heading}\n## ${version} (${date})\n${after}`
}

/**
 * @param {string} text
 * @param {string} version
 * @returns {string} what the section of a version says
 */
export function notesOf(text, version) {
  const [, section = ''] = text.split(`\n## ${version} (`)
  return (
    section
      .slice(section.indexOf('\n') + 1)
      .split('\n## ')[0]
      ?.trim() ?? ''
  )
}

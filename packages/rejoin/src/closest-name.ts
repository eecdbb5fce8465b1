/** The name that somebody probably meant: the closest in spelling. Undefined when none is close. */
export function closestName(word: string, names: readonly string[]): string | undefined {
  const typed = plainName(word)
  let closest: string | undefined
  // Two mistakes in a word of five letters make another word.
  let most = Math.min(2, Math.floor(typed.length / 3))
  for (const name of names) {
    const mistakes = mistakesIn(typed, plainName(name))
    if (mistakes > most) continue
    closest = name
    most = mistakes - 1
  }
  return closest
}

/** `max-per-ip`, `max_per_ip` and `maxPerIp` are one name, written in three ways. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** How many letters are missing, too many, wrong, or swapped with the next one (Damerau and Levenshtein). */
function mistakesIn(typed: string, name: string): number {
  const rows = [Array.from({ length: name.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= typed.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= name.length; j += 1) {
      const isSame = typed[i - 1] === name[j - 1]
      const isSwapped = typed[i - 1] === name[j - 2] && typed[i - 2] === name[j - 1]
      row[j] = Math.min(at(row, j - 1) + 1, at(rows[i - 1], j) + 1, at(rows[i - 1], j - 1) + (isSame ? 0 : 1))
      if (isSwapped) row[j] = Math.min(at(row, j), at(rows[i - 2], j - 2) + 1)
    }
    rows.push(row)
  }
  return at(rows[typed.length], name.length)
}

function at(row: readonly number[] | undefined, index: number): number {
  return row?.[index] ?? Number.POSITIVE_INFINITY
}

/**
 * How far the number of a new branch is from that of the branch before it. Drawn, because the number is all that a snowflake id
 * says of its branch: a copy of a log, a second master, or a log that was emptied would open the next number, or 0, too.
 */
export function drawBranchStep(random: () => number): number {
  return 1 + Math.floor(random() * mostSteps)
}

// A snowflake id has room for 1,024 tags, of which the next branch gets any but that of the branch before it.
const mostSteps = 1023

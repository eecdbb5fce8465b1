/**
 * How far the number of a new branch is from the number of the branch before it. The step is random, because a snowflake id knows
 * its branch by the number alone. With a fixed step, a copy of the log or a second master would open the same number, and an
 * emptied log would open number 0 again.
 */
export function drawBranchStep(random: () => number): number {
  return 1 + Math.floor(random() * mostSteps)
}

// A snowflake id has room for 1,024 branch tags. The next branch may get any tag but that of the branch before it.
const mostSteps = 1023

/** Chooses some of all, each at most once and each as likely as the others. Takes time in proportion to their number. */
export function chooseAtRandom<Each>(all: readonly Each[], count: number): readonly Each[] {
  const shuffled = [...all]
  // A shuffle (Fisher–Yates) that stops when enough are in front.
  for (let index = 0; index < count; index += 1) {
    const other = index + Math.floor(Math.random() * (shuffled.length - index))
    const chosen = shuffled[other] as Each
    shuffled[other] = shuffled[index] as Each
    shuffled[index] = chosen
  }
  return shuffled.slice(0, count)
}

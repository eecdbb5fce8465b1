/** For a flag that may be given several times. Commander's own lists would take the arguments that follow as well. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

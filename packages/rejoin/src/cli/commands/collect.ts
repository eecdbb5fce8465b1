/** For a flag that can be repeated. Commander's own lists would also take the arguments after the flag. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

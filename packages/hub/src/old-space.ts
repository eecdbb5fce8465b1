/**
 * The bytes that `--max-old-space-size` allows for old objects; Infinity without this option. V8 ends a process that needs more,
 * and counts room for young objects, 48 MB, on top of its limit. A heap of 128 MB ended at 74 % of that limit.
 *
 * @param options - the options of Node
 */
export function oldSpaceBytes(options: readonly string[]): number {
  const values = options.flatMap((option, index) => {
    const [, value = options[index + 1]] = /^--max[-_]old[-_]space[-_]size(?:=(.*))?$/.exec(option) ?? [undefined, '']
    return value === '' ? [] : [Number(value)]
  })
  const [megabytes = Number.NaN] = values.slice(-1)
  return megabytes > 0 ? megabytes * 1024 * 1024 : Number.POSITIVE_INFINITY
}

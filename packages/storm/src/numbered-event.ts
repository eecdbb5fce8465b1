/** An event of a storm. Its data holds its number and the time of its publish, and is padded to the size of the plan. */
export interface NumberedEvent {
  readonly number: number
  /** The time of the publish in milliseconds, by `performance.now()` of the process that runs the storm. */
  readonly at: number
}

export function textOf({ number, at }: NumberedEvent, size: number): string {
  return `${number} ${at.toFixed(1)} `.padEnd(size, filling)
}

/** The event in a text; undefined for a text that this storm did not write, or that was changed on the way. */
export function readNumbered(text: string, size: number): NumberedEvent | undefined {
  const [, number, at, rest = ''] = pattern.exec(text) ?? []
  const event = { number: Number(number), at: Number(at) }
  // The length has to be that of the published text: another length means that the event was changed.
  const length = Math.max(size, text.length - rest.length)
  return number !== undefined && text.length === length ? event : undefined
}

const filling = 'x'
const pattern = /^(\d{1,12}) (\d{1,12}\.\d) (x*)$/

/** What a storm publishes: an event says its number and when it was made, and is filled up to the size that was asked for. */
export interface NumberedEvent {
  readonly number: number
  /** In milliseconds, on the clock of the process that runs the storm. */
  readonly at: number
}

export function textOf({ number, at }: NumberedEvent, size: number): string {
  return `${number} ${at.toFixed(1)} `.padEnd(size, filling)
}

/** Undefined for a text that no storm of this size has written, or that was changed on the way. */
export function readNumbered(text: string, size: number): NumberedEvent | undefined {
  const [, number, at, rest = ''] = pattern.exec(text) ?? []
  const event = { number: Number(number), at: Number(at) }
  // As long as what was published: an event that was cut short or grew was changed by somebody.
  const length = Math.max(size, text.length - rest.length)
  return number !== undefined && text.length === length ? event : undefined
}

const filling = 'x'
const pattern = /^(\d{1,12}) (\d{1,12}\.\d) (x*)$/

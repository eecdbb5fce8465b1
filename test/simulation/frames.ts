/** One block of a stream, read by hand: the simulation must not believe the parser that it tests. */
export interface WireFrame {
  readonly id: string | undefined
  readonly type: string
  readonly data: string | undefined
  /** For readers that asked to be shown it. */
  readonly channel: string | undefined
}

/** The frames of a whole write; undefined when it is not made of whole frames. */
export function readFrames(text: string): WireFrame[] | undefined {
  if (!text.endsWith('\n\n')) return undefined
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((block) => {
      const fields = new Map<string, string>()
      for (const line of block.split('\n')) {
        const colon = line.indexOf(': ')
        if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2))
      }
      const [id, type = 'message', data, channel] = ['id', 'event', 'data', 'channel'].map((name) => fields.get(name))
      return { id, type, data, channel }
    })
}

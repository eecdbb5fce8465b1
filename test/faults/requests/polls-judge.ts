import type { ModelAnswer, ModelPoll } from './polls-model.ts'

/** What came as the answer to a poll: its status, and its body unless it had none. */
export type PollReceived = { readonly status: number } & Partial<PollBody>

export interface PollBody {
  readonly events: readonly PollFrame[]
  readonly cursor: string | null
}

interface PollFrame {
  readonly id: string | null
  readonly type: string
  readonly data: string
}

/** Whether what came is what a model expects, to the byte of every event. */
export function isAnswer(expected: ModelAnswer, { start }: ModelPoll, got: PollReceived): boolean {
  if (expected.kind === 'nothing-more') return got.status === 204
  if (expected.kind === 'deleted') return got.status === 410
  const { events = [], cursor = null } = got
  const [hello, ...rest] = events
  if (got.status !== 200 || hello?.type !== 'hello' || cursor === null) return false
  const { resumed, requested, replay } = JSON.parse(hello.data) as Hello
  const sent = start.from === 'cursor' ? start.cursor : start.from === 'earliest' ? 'earliest' : null
  if (resumed !== expected.kind.startsWith('resumed') || requested !== sent) return false
  if (replay !== ('replay' in expected ? expected.replay : undefined)) return false
  const close = rest.filter(({ type }) => type === 'close')
  const isToldOfTheEnd =
    close.length === 1 && close[0]?.data === '{"reason":"finished"}' && rest.at(-1)?.type === 'close'
  if (expected.isOver !== isToldOfTheEnd || (!expected.isOver && close.length > 0)) return false
  const news = rest.filter(({ type }) => type !== 'checkpoint' && type !== 'close')
  if (expected.kind === 'beheaded') {
    const gap = gapOf(news.shift())
    if (hello.id !== null || gap?.requested !== 'earliest' || !expected.reasons.includes(gap.reason)) return false
  }
  if ('events' in expected) return shown(news) === shown(expected.events)
  // Nothing happens meanwhile, so nothing comes after the gap.
  const served = news.slice(0, -1)
  const gap = gapOf(news.at(-1))
  if (!gap || !expected.reasons.includes(gap.reason) || cursor !== gap.latest) return false
  if (expected.kind === 'gap') return served.length === 0
  const owed = expected.eventsThrough(gap.requested)
  return owed !== undefined && shown(served) === shown(owed)
}

interface AnnouncedGap {
  readonly reason: string
  readonly requested: string
  readonly latest: string
}

function gapOf(frame: PollFrame | undefined): AnnouncedGap | undefined {
  if (frame?.type !== 'sync-required') return undefined
  const gap = JSON.parse(frame.data) as AnnouncedGap
  return gap.latest === frame.id ? gap : undefined
}

function shown(events: readonly PollFrame[]): string {
  return events.map(({ id, type, data }) => `${id} ${type} ${data}`).join('\n')
}

interface Hello {
  readonly resumed: boolean
  readonly requested: string | null
  readonly replay?: number
}

import { useCallback, useEffect, useState } from 'react'
import type { Figures as FiguresOfSecond } from '../../src/monitoring/figures.ts'
import { Brand } from '../shared/brand.tsx'
import { useStore } from '../shared/store.ts'
import { useNow } from '../shared/use-now.ts'
import type { Admin } from './admin.ts'
import { Channels } from './channels.tsx'
import { Charts } from './charts.tsx'
import { Confirm, type Question } from './confirm.tsx'
import { Connections } from './connections.tsx'
import { Ends } from './ends.tsx'
import { type Live, type LiveView, openLive } from './live.ts'
import { Node } from './node.tsx'
import { Rejections } from './rejections.tsx'
import { Returns } from './returns.tsx'
import { Tiles } from './tiles.tsx'

export function Overview({ admin, leave }: { admin: Admin; leave(): void }) {
  const [live, setLive] = useState<Live | null>(null)
  useEffect(() => {
    const opened = openLive(admin)
    setLive(opened)
    return () => opened.close()
  }, [admin])
  return live && <Figures admin={admin} live={live} leave={leave} />
}

function Figures({ admin, live, leave }: { admin: Admin; live: Live; leave(): void }) {
  const { history, closes, rejections, line } = useStore(live.store)
  const [question, setQuestion] = useState<Question | null>(null)
  const close = useCallback(() => setQuestion(null), [])
  const now = history.at(-1)

  const drain: Question = {
    title: 'Drain this hub?',
    consequence:
      'All readers are sent away within five seconds and no new ones are taken. Only a restart takes that back.',
    answer: 'Drain',
    act: () => admin.post('/admin/drain', { withinMs: 5000 }),
  }

  const maintenance: Question = now?.state.maintenance
    ? {
        title: 'End maintenance?',
        consequence: 'Readers are taken in again. They miss nothing of what was published meanwhile.',
        answer: 'End maintenance',
        act: () => admin.post('/admin/maintenance', { on: false }),
      }
    : {
        title: 'Begin maintenance?',
        consequence:
          'All readers are sent away within five seconds, and told to come back in a minute. Publishing goes on, and they miss nothing.',
        answer: 'Begin maintenance',
        act: () => admin.post('/admin/maintenance', { on: true, retryAfterMs: 60_000, withinMs: 5000 }),
      }

  return (
    <main>
      <header>
        <Brand>dashboard</Brand>
        <LinePill line={line} />
        {now && <StatePill state={now.state} />}
        <div className="actions">
          <button type="button" aria-pressed={now?.state.maintenance ?? false} onClick={() => setQuestion(maintenance)}>
            Maintenance
          </button>
          <button type="button" disabled={now?.state.draining} onClick={() => setQuestion(drain)}>
            {now?.state.draining ? 'Drained' : 'Drain'}
          </button>
          {admin.token && (
            <button type="button" onClick={leave}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <h1 className="unseen">Rejoin dashboard</h1>
      {now ? (
        <>
          <Tiles history={history} now={now} />
          <Charts history={history} />
          <div className="pair">
            <Returns history={history} now={now} />
            <Ends closes={closes} slowest={now.slowest} />
          </div>
          <Rejections history={history} now={now} latest={rejections} />
          <Channels admin={admin} ask={setQuestion} />
          <Connections admin={admin} ask={setQuestion} />
          <Node now={now} history={history} />
        </>
      ) : (
        <p className="waiting" role="status">
          Waiting for the first second…
        </p>
      )}
      <Confirm question={question} close={close} />
    </main>
  )
}

/** Shows that the hub drains or is in maintenance. An operator who misses readers has to see why they are gone. */
function StatePill({ state: { draining, maintenance } }: Pick<FiguresOfSecond, 'state'>) {
  if (!draining && !maintenance) return null
  return (
    <p className="state" data-state="rejecting" role="status">
      {draining ? 'draining' : 'maintenance'}: no readers are taken
    </p>
  )
}

function LinePill({ line: { state, nextRetryAt } }: Pick<LiveView, 'line'>) {
  const now = useNow(100, nextRetryAt !== null)
  const leftMs = nextRetryAt === null ? 0 : Math.max(0, nextRetryAt - now)
  return (
    <p className="state" data-state={state === 'connected' ? 'connected' : 'away'} role="status">
      {nextRetryAt === null ? (state === 'connected' ? 'live' : state) : `back in ${(leftMs / 1000).toFixed(1)} s`}
    </p>
  )
}

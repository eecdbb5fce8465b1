import { Brand } from '../shared/brand.tsx'
import { useStore } from '../shared/store.ts'
import { CodeSample } from './code-sample.tsx'
import { LaneView } from './lane-view.tsx'
import { OwnEvents } from './own-events.tsx'
import type { Session } from './session.ts'
import { Terminal } from './terminal.tsx'
import { Troubles } from './troubles.tsx'
import { WireView } from './wire-view.tsx'

export function Playground({ session }: { session: Session }) {
  const { story, trouble, isSlow, own, cursor } = useStore(session)
  return (
    <main>
      <header>
        <Brand />
        <h1>Cut the line. Lose nothing.</h1>
        <p className="lead">
          This page publishes two numbered events a second and reads them back twice: over an ordinary SSE stream, and
          over Rejoin. Cut both, and the plain stream loses what is sent meanwhile; Rejoin comes back with the last id
          it saw and is sent the rest, in order.
        </p>
      </header>

      <Troubles session={session} trouble={trouble} isSlow={isSlow} />
      <p id="story" role="status">
        {story}
      </p>

      <div className="lanes">
        <LaneView id="plain" name="Plain SSE" hint="no ids" lane={session.plain} />
        <LaneView id="rejoin" name="Rejoin" hint="resumes by id" lane={session.rejoin} />
      </div>
      <ul className="legend" aria-label="What the squares mean">
        <li>
          <i data-kind="sent" />
          published, not here yet
        </li>
        <li>
          <i data-kind="live" />
          received live
        </li>
        <li>
          <i data-kind="replayed" />
          replayed after the cut
        </li>
        <li>
          <i data-kind="announced" />
          gone, and announced
        </li>
        <li>
          <i data-kind="missing" />
          missing
        </li>
      </ul>

      <div className="below">
        <WireView wire={session.wire} />
        <div>
          <OwnEvents own={own} publish={session.publishOwn} />
          <CodeSample channel={session.channel} />
        </div>
      </div>
      <Terminal channel={session.channel} cursor={cursor} />
    </main>
  )
}

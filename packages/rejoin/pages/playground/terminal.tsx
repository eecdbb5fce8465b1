/** The commands that read and publish the same events with curl. */
export function Terminal({ channel, cursor }: { channel: string; cursor: string | null }) {
  const url = location.origin
  return (
    <section className="try" aria-labelledby="try-name">
      <h2 id="try-name">The same from a terminal</h2>
      <dl>
        <Command what="Watch these numbers">{`curl -N ${url}/events/${channel}`}</Command>
        <Command what="Return with an id">
          {`curl -N -H 'Last-Event-ID: ${cursor ?? '·'.repeat(26)}' ${url}/events/${channel}`}
        </Command>
        <Command what="Publish">{`curl -d hello '${url}/publish/${channel}?type=own'`}</Command>
      </dl>
    </section>
  )
}

function Command({ what, children }: { what: string; children: string }) {
  return (
    <div>
      <dt>{what}</dt>
      <dd>
        <code>{children}</code>
      </dd>
    </div>
  )
}

import { type FormEvent, useState } from 'react'
import type { OwnEvent } from './session.ts'

export function OwnEvents({ own, publish }: { own: readonly OwnEvent[]; publish(text: string): Promise<boolean> }) {
  const [text, setText] = useState('')
  const [isRejected, setRejected] = useState(false)

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (text === '') return
    const isTaken = await publish(text)
    setRejected(!isTaken)
    if (isTaken) setText('')
  }

  return (
    <section className="own" aria-labelledby="own-name">
      <h2 id="own-name">Publish your own</h2>
      <form onSubmit={(event) => void submit(event)}>
        <input
          aria-label="Text of your event"
          placeholder="Say something, in a cut too"
          autoComplete="off"
          maxLength={500}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <button type="submit">Publish</button>
      </form>
      <ul aria-label="Your events, as they arrived">
        {own.map(({ id, text: said }) => (
          <li key={id}>
            <span>{said}</span> <small>{id}</small>
          </li>
        ))}
        {own.length === 0 && <li className="none">Nothing has arrived yet.</li>}
      </ul>
      <p className="rejected" role="alert">
        {isRejected && 'It was not taken. Is the server running?'}
      </p>
    </section>
  )
}

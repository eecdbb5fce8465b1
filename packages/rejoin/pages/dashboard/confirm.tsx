import { useEffect, useRef, useState } from 'react'

/** An action that needs a confirmation, and its consequence. */
export interface Question {
  readonly title: string
  readonly consequence: string
  readonly answer: string
  act(): Promise<void>
}

/** Asks for a confirmation before an action that readers notice. */
export function Confirm({ question, close }: { question: Question | null; close(done: boolean): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [failure, setFailure] = useState('')

  useEffect(() => {
    setFailure('')
    if (question) dialog.current?.showModal()
    else dialog.current?.close()
  }, [question])

  async function act(): Promise<void> {
    try {
      await question?.act()
      close(true)
    } catch (error) {
      setFailure((error as Error).message)
    }
  }

  /** The browser tells late that a dialog was closed. By then, the next question may have opened it again. */
  function closed(): void {
    if (!dialog.current?.open) close(false)
  }

  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={closed}>
      <h2 id="question">{question?.title}</h2>
      <p>{question?.consequence}</p>
      <p className="failure" role="alert">
        {failure}
      </p>
      <div className="answers">
        <button type="button" onClick={() => close(false)}>
          Cancel
        </button>
        <button type="button" className="danger" onClick={() => void act()}>
          {question?.answer}
        </button>
      </div>
    </dialog>
  )
}

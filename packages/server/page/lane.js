const columns = 10

/**
 * One lane of the playground: the newest numbers as squares, what was counted, and the state of its connection. A number
 * is missing from the moment a later one arrives; before that it may still be on its way.
 */
export function createLane(element) {
  const squares = element.querySelector('.squares')
  const pill = element.querySelector('.state')
  const counts = { received: 0, replayed: 0, duplicates: 0, missing: 0 }
  /** What became of each number: 'sent', 'unsent', 'live', 'replayed' or 'missing'. */
  const kinds = new Map()
  const sentAt = new Map()
  let first = 1
  let highest = 0
  let openedAt
  let retryAt

  return {
    counts,
    get isConnected() {
      return openedAt !== undefined
    },
    get highest() {
      return highest
    },

    connected() {
      openedAt = performance.now()
      showState('connected', 'connected')
    },

    /** The connection is gone; `until`, if known, is when the next attempt is made. */
    away(text, until) {
      openedAt = undefined
      retryAt = until
      showState('away', text)
      showCountdown()
    },

    /** A number is about to be published. */
    sending(number) {
      sentAt.set(number, performance.now())
      while (number >= first + squares.children.length) slide()
      mark(number, 'sent')
    },

    /** A number could not be published, so nobody can miss it. */
    unsent(number) {
      if (kinds.get(number) === 'sent') mark(number, 'unsent')
    },

    receive(number) {
      const known = kinds.get(number)
      if (known === 'live' || known === 'replayed') {
        counts.duplicates++
      } else {
        if (known === 'missing') counts.missing--
        // Published before this connection was opened: it was kept for us.
        const kind = sentAt.get(number) < openedAt ? 'replayed' : 'live'
        counts.received++
        if (kind === 'replayed') counts.replayed++
        mark(number, kind)
        for (; highest < number; highest++) miss(highest)
      }
      showCounts()
    },

    showCountdown,
  }

  function miss(number) {
    if (kinds.get(number) !== 'sent') return
    counts.missing++
    mark(number, 'missing')
  }

  function mark(number, kind) {
    kinds.set(number, kind)
    const square = squares.children[number - first]
    if (!square) return
    square.textContent = number
    square.dataset.kind = kind
    square.classList.toggle('long', number > 999)
  }

  /** Moves by whole rows, so that the squares stand still while one looks at them. */
  function slide() {
    for (let column = 0; column < columns; column++) {
      const square = squares.firstElementChild
      square.textContent = ''
      delete square.dataset.kind
      squares.append(square)
      // Far out of sight and out of every window: a tab that stays open for days keeps its size.
      kinds.delete(first - 5000)
      sentAt.delete(first - 5000)
      first++
    }
  }

  function showCounts() {
    for (const [name, count] of Object.entries(counts)) {
      const shown = element.querySelector(`[data-count="${name}"]`)
      shown.textContent = count.toLocaleString('en')
    }
    const missing = element.querySelector('[data-count="missing"]')
    missing.dataset.tone = counts.missing > 0 ? 'bad' : counts.replayed > 0 ? 'good' : ''
  }

  function showState(state, text) {
    pill.dataset.state = state
    pill.textContent = text
  }

  function showCountdown() {
    if (openedAt !== undefined || !retryAt) return
    pill.textContent = `back in ${(Math.max(0, retryAt - Date.now()) / 1000).toFixed(1)} s`
  }
}

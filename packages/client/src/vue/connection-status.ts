import { defineComponent, h, type PropType } from 'vue'
import type { Source } from '../bindings/shared-streams.ts'
import { pressButton, type StatusWords, statusOf } from '../bindings/status.ts'
import { useView } from './composables.ts'

/** Shows the connection of a stream. Import `@rejoin/client/status.css` once, or style its classes yourself. */
export const ConnectionStatus = defineComponent({
  name: 'ConnectionStatus',
  props: {
    /** The URL of the stream, as other components give it, or the stream itself. */
    source: { type: [String, Object] as PropType<Source> },
    /**
     * Called when the user presses "Sign in" after the server has rejected the credentials. When its promise has
     * settled, the stream goes on at its cursor. Without it, the button asks `token` once more, which may itself be a
     * login.
     */
    onSignIn: { type: Function as PropType<() => unknown> },
    /** Words that replace the English ones. */
    words: { type: Object as PropType<Partial<StatusWords>> },
  },
  setup(props) {
    const view = useView(() => props.source, {}, false)
    return () => {
      const connection = view.value
      const status = statusOf(connection, props.words)
      if (!status) return null
      const { kind, text, spoken, button } = status
      const named = kind === 'live' ? { role: 'img', 'aria-label': text } : {}
      return h('span', { class: 'rejoin-status', 'data-status': kind }, [
        h('span', { class: 'rejoin-status-dot', ...named }),
        h('span', { class: 'rejoin-status-text', 'aria-hidden': true }, text),
        h('span', { class: 'rejoin-status-spoken', role: 'status' }, spoken),
        button && h('button', { type: 'button', onClick: () => pressButton(connection, props.onSignIn) }, button),
      ])
    }
  },
})

import type { ConnectOptions } from '../options.ts'
import type { Attempt } from '../request.ts'
import { subjectIn } from './identity.ts'
import type { Member } from './stream-group.ts'

/**
 * Watches whose credentials a function gives, as far as a JWT shows it. Once they are those of another user than before,
 * the components start anew.
 *
 * A part of its own, because only components can stay when the user changes: Redux is told who reads, and a status
 * element has no credentials.
 *
 * @param members - all that share the stream
 * @param shared - the options of the stream
 * @returns what takes the place of the credentials in the options of the member
 */
export function watchUser(
  member: Member,
  members: ReadonlySet<Member>,
  shared: ConnectOptions,
  startAnew: () => void,
): Pick<ConnectOptions, 'token' | 'headers'> {
  const group = member.group!
  const { token, headers } = member.options
  // It comes back to the stream of another user.
  if (group.subject && isOther(member)) member.end(true)
  return {
    token: typeof token === 'function' ? watched('token', token) : token,
    // A token takes the place of the header.
    headers: typeof headers === 'function' && !token ? watched('headers', headers) : headers,
  }

  function isOther(one: Member): boolean {
    const { subject = group.subject } = one
    one.subject = group.subject
    return subject !== group.subject
  }

  function watched<Given>(name: string, ask: (attempt: Attempt) => Given) {
    return async (attempt: Attempt): Promise<Awaited<Given>> => {
      const found = await ask(attempt)
      if (shared.identity || attempt.signal.aborted) return found
      group.subject = subjectIn({ [name]: found })
      if (!group.subject || ![...members].filter(isOther).length) return found
      // Removes the stored cursor, too.
      group.stream()?.reset()
      startAnew()
      // The stream of this attempt is closed, and must not ask with the cursor of another user.
      return new Promise<never>(() => undefined)
    }
  }
}

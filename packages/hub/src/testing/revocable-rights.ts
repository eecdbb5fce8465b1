import type { Grant } from '../hub/readers/grant.ts'

/**
 * Rights that a test can take back. A request with credentials that were taken back is answered with 401. New credentials are let
 * in again, as after a login.
 */
export interface RevocableRights {
  /**
   * The rights of a request.
   * @param credentials - of the request, such as its `Authorization`; empty for none
   * @param ask - the rules of the program
   */
  of(credentials: string, ask: () => Grant | null | Promise<Grant | null>): Promise<Grant | null>
  /** Takes back what one subject, or everybody, has been given. Returns the subjects whose streams have to end. */
  revoke(subject?: string): readonly string[]
}

export function createRevocableRights(): RevocableRights {
  const given = new Map<string, string>()
  const revoked = new Set<string>()

  return {
    async of(credentials, ask) {
      if (revoked.has(credentials)) return null
      const grant = await ask()
      if (!grant) return null
      // Rights that everybody has belong to nobody, and could not be taken back.
      const subject = grant.subject ?? anybody
      given.set(credentials, subject)
      return { ...grant, subject }
    },
    revoke(subject) {
      const ended = new Set<string>()
      for (const [credentials, owner] of given) {
        if (subject !== undefined && owner !== subject) continue
        revoked.add(credentials)
        ended.add(owner)
        given.delete(credentials)
      }
      return [...ended]
    },
  }
}

const anybody = 'anybody'

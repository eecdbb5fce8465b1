import type { Grant } from '../hub/readers/grant.ts'

/** Rights that a test can revoke. Requests with revoked credentials get 401. New credentials are let in, as after a login. */
export interface RevocableRights {
  /**
   * The rights of a request.
   * @param credentials - the credentials of the request, such as its `Authorization`; '' for none
   * @param ask - asks the program's own rules
   */
  of(credentials: string, ask: () => Grant | null | Promise<Grant | null>): Promise<Grant | null>
  /** Revokes the credentials of one subject, or of everybody. Returns the subjects whose streams have to end. */
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
      // Rights without a subject could not be revoked, so they get one.
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

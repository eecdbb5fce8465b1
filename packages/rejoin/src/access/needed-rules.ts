import { RejoinError } from '@rejoin/protocol'
import type { AccessRules } from './rules.ts'

export interface AccessSettings {
  readonly access?: AccessRules | undefined
  readonly host?: string | undefined
  readonly insecure?: boolean | undefined
}

/** The access rules; undefined without any. Throws when the settings need rules and have none. */
export function rulesOf({ access, host, insecure }: AccessSettings, isLoopback: boolean): AccessRules | undefined {
  const { jwt = [], keys = [], anonymous, cors = [], hosts = [], cookie } = access ?? {}
  if (jwt.length > 0 || keys.length > 0 || anonymous !== undefined) return access
  if (!isLoopback && !insecure) {
    throw new RejoinError(
      `Rejoin does not listen on ${host}: there are no access rules, so everyone who reaches it could read and publish ` +
        'everything. Listen on 127.0.0.1, set access rules, or pass --insecure if that is what you want.',
      { code: 'invalid-option' },
    )
  }
  if (cors.length === 0 && hosts.length === 0 && cookie === undefined) return undefined
  if (insecure && cookie === undefined) return { cors, hosts, anonymous: { subscribe: ['*'], publish: ['*'] } }
  throw new RejoinError(
    'access.cors, access.hosts and access.cookie need access rules beside them. Set access.jwt or access.keys, or say in ' +
      "access.anonymous what everybody may do: --access-anonymous-subscribe '*'. Pages of localhost need no access.cors.",
    { code: 'invalid-option' },
  )
}

import { nchanModule, startNchan } from './nchan.ts'
import { type NodeSubjectName, startNode } from './node.ts'
import type { Load, Subject } from './subject.ts'

export type SubjectName = NodeSubjectName | 'nchan'

/** The peers there are on this machine. */
export const peers: readonly SubjectName[] = [
  'better-sse',
  'plain res.write',
  ...(nchanModule ? (['nchan'] as const) : []),
]

export const peersNote = nchanModule
  ? 'nchan from Debian’s libnginx-mod-nchan'
  : 'nchan not present; it comes with the Debian package libnginx-mod-nchan'

export function startSubject(name: SubjectName, load: Load): Promise<Subject> {
  return name === 'nchan' ? startNchan(load) : startNode(name)
}

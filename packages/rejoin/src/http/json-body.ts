import { RejoinError } from '@rejoin/protocol'
import * as v from 'valibot'

/**
 * The value, if the schema accepts it. Throws `invalid-data` with the first problem. Each message of the schema completes a
 * sentence that begins with the name of the field.
 */
export function checkedBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const { success, output, issues } = v.safeParse(schema, value)
  if (success) return output
  const [issue] = issues
  const field = v.getDotPath(issue)
  throw new RejoinError(field === null ? issue.message : fieldProblem(field, issue), { code: 'invalid-data' })
}

function fieldProblem(field: string, { input, message }: v.BaseIssue<unknown>): string {
  return input === undefined ? `"${field}" is missing.` : `"${field}" ${message}`
}

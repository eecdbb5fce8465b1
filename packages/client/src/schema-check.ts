import type { SchemaResult, Schemas } from '@rejoin/protocol'
import { isPromise } from './handler-set.ts'
import type { Check } from './handlers.ts'

/** Makes the check of data by `schemas`. The data of an event becomes the output of its schema. */
export function createCheck(schemas: Schemas): Check {
  return (event, data, take, tellInvalid) => {
    const result = schemas[event.type]?.['~standard']?.validate(data) ?? { value: data }
    const accept = (it: SchemaResult<unknown>) => {
      if (it.issues) throw it.issues
      event.data = it.value
      return take(event)
    }
    if (!isPromise(result)) return accept(result)
    return Promise.resolve(result)
      .then(accept)
      .catch((error) => tellInvalid(event, error))
  }
}

/**
 * What a schema library (zod, valibot, arktype …) shows of a schema, by the Standard Schema specification, version 1:
 * https://standardschema.dev. Declared here, so that types need no package.
 */
export interface Schema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    validate(value: unknown): SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[] }

/** A schema for each type of event. */
export type Schemas = Readonly<Record<string, Schema>>

/** The events that schemas let through. */
export type EventsOf<Given extends Schemas> = {
  [Type in keyof Given]: NonNullable<Given[Type]['~standard']['types']>['output']
}

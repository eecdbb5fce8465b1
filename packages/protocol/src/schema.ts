/**
 * A schema of zod, valibot, arktype or any other library that follows Standard Schema, version 1
 * (https://standardschema.dev). Declared here, so that the type needs no package.
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

/** The event types that schemas declare, with the data that each schema returns. */
export type EventsOf<Given extends Schemas> = {
  [Type in keyof Given]: NonNullable<Given[Type]['~standard']['types']>['output']
}

import type { EventsOf, Schemas } from './schema.ts'

/**
 * Declares the event types of each channel, and the data of each type. Write the part of a channel name that varies
 * like `:id`.
 *
 * @example
 * ```ts
 * interface Channels {
 *   'orders/:id': { shipped: { at: number }; cancelled: { reason: string } }
 *   news: { message: { title: string } }
 * }
 * ```
 */
export type ChannelTypes = object

/** The channel names that a declaration allows. */
export type ChannelIn<Channels extends ChannelTypes> = NameOf<keyof Channels & string>

/** The events of a channel, by its name: `EventsIn<Channels, 'orders/42'>`. */
export type EventsIn<Channels extends ChannelTypes, Name extends string> = Name extends keyof Channels
  ? Channels[Name]
  : {
      [Template in keyof Channels & string]: Name extends NameOf<Template> ? Channels[Template] : never
    }[keyof Channels & string]

/**
 * The messages that a channel takes. `Options` holds the other fields of a message. A message of the type `message` may
 * leave its type out.
 */
export type MessageIn<Channels extends ChannelTypes, Name extends string, Options> = {
  [Type in keyof EventsIn<Channels, Name> & string]: Options &
    (Type extends 'message' ? { readonly type?: Type } : { readonly type: Type }) &
    DataOf<EventsIn<Channels, Name>[Type]>
}[keyof EventsIn<Channels, Name> & string]

/** Like `MessageIn`, for batches: each message names its channel. */
export type ChannelMessageIn<Channels extends ChannelTypes, Options> = {
  [Template in keyof Channels & string]: {
    readonly channel: NameOf<Template>
  } & MessageIn<Channels, Template, Options>
}[keyof Channels & string]

/** Schemas for the events of each channel, from any library that follows Standard Schema. */
export type ChannelSchemas = Readonly<Record<string, Schemas>>

/** The `ChannelTypes` that a set of schemas declares. */
export type ChannelsOf<Given extends ChannelSchemas> = { [Template in keyof Given]: EventsOf<Given[Template]> }

/** The names that a template such as `orders/:id` stands for. */
type NameOf<Template extends string> = Template extends `${infer Before}:${infer Part}`
  ? Part extends `${string}/${infer After}`
    ? `${Before}${string}/${NameOf<After>}`
    : `${Before}${string}`
  : Template

type DataOf<Data> =
  | { readonly data: Data; readonly text?: never }
  | (string extends Data ? { readonly text: string; readonly data?: never } : never)

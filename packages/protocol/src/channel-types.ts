import type { EventsOf, Schemas } from './schema.ts'

/**
 * What may be published where: the types of events, and their data, for each channel. A part of a name that varies is
 * written like `:id`.
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

/** The names that a declaration allows. */
export type ChannelIn<Channels extends ChannelTypes> = NameOf<keyof Channels & string>

/** The events of a channel, by its name: `EventsIn<Channels, 'orders/42'>`. */
export type EventsIn<Channels extends ChannelTypes, Name extends string> = Name extends keyof Channels
  ? Channels[Name]
  : {
      [Template in keyof Channels & string]: Name extends NameOf<Template> ? Channels[Template] : never
    }[keyof Channels & string]

/**
 * What can be published to a channel. `Options` is what a message has besides; a message of the type `message` need not name
 * its type.
 */
export type MessageIn<Channels extends ChannelTypes, Name extends string, Options> = {
  [Type in keyof EventsIn<Channels, Name> & string]: Options &
    (Type extends 'message' ? { readonly type?: Type } : { readonly type: Type }) &
    DataOf<EventsIn<Channels, Name>[Type]>
}[keyof EventsIn<Channels, Name> & string]

/** The same of a message that names its channel, for batches. */
export type ChannelMessageIn<Channels extends ChannelTypes, Options> = {
  [Template in keyof Channels & string]: {
    readonly channel: NameOf<Template>
  } & MessageIn<Channels, Template, Options>
}[keyof Channels & string]

/** Schemas for the events of each channel, of any library that follows Standard Schema. */
export type ChannelSchemas = Readonly<Record<string, Schemas>>

/** The declaration that schemas make. */
export type ChannelsOf<Given extends ChannelSchemas> = { [Template in keyof Given]: EventsOf<Given[Template]> }

/** `orders/:id` as the names that it stands for. */
type NameOf<Template extends string> = Template extends `${infer Before}:${infer Part}`
  ? Part extends `${string}/${infer After}`
    ? `${Before}${string}/${NameOf<After>}`
    : `${Before}${string}`
  : Template

type DataOf<Data> =
  | { readonly data: Data; readonly text?: never }
  | (string extends Data ? { readonly text: string; readonly data?: never } : never)

export type {
  ChannelIn,
  ChannelMessageIn,
  ChannelSchemas,
  ChannelsOf,
  ChannelTypes,
  EventsIn,
  MessageIn,
} from './channel-types.ts'
export type { DecodedId, IdCodec } from './codecs/codec.ts'
export { type HlcOptions, hlc } from './codecs/hlc.ts'
export { sequence } from './codecs/sequence.ts'
export { type SnowflakeOptions, snowflake } from './codecs/snowflake.ts'
export { ulid } from './codecs/ulid.ts'
export { uuidv7 } from './codecs/uuidv7.ts'
export {
  type Checkpoint,
  type Close,
  type CloseReason,
  closeReasons,
  encodeCheckpoint,
  encodeClose,
  encodeHeartbeat,
  encodeHello,
  encodeSyncRequired,
  type Hello,
  type RetainedEvent,
  type SyncRequired,
} from './control.ts'
export { type CursorVerdict, type IdContext, judgeCursor, renderId } from './cursor.ts'
export { encodeComment, encodeEvent, encodeRetry, normaliseData, type OutgoingEvent } from './encode.ts'
export { createEpoch, type Epoch, isEpoch } from './epoch.ts'
export { type ErrorCode, errorCodes, RejoinError } from './errors.ts'
export { type GapReason, gapReasons, gravestLoss, type LossReason } from './gap-reason.ts'
export {
  type Branch,
  branchAt,
  type History,
  isSamePoint,
  mergeBranches,
  type NewBranch,
  openBranch,
  type Point,
  survivorOf,
} from './history.ts'
export { createIdFormats, type IdFormat, type IdFormats } from './id-format.ts'
export { isIdText } from './id-text.ts'
export { longestTimerMs } from './longest-timer.ts'
export { checkChannel, checkType, isReservedType, reservedTypes } from './names.ts'
export { createParser, type ParsedEvent, type Parser, type ParserOptions } from './parse.ts'
export { checkSelector, covers, isPattern, narrowestOf, patternsOver, prefixOf } from './pattern.ts'
export { comparePositions, isAfter, isSame, latest, origin, type Position } from './position.ts'
export {
  createPositionClock,
  type PositionClock,
  type PositionClockKind,
  type PositionClockOptions,
  type PositionClockRange,
} from './position-clock.ts'
export type { EventsOf, Schema, SchemaResult, Schemas } from './schema.ts'
export { type CheckedMessage, createSchemaCheck, type SchemaCheck } from './schema-check.ts'

import type { HubOptions } from '@rejoin/hub'
import { idCodecOf } from '../id-formats.ts'
import { snapshotsBy } from '../snapshots.ts'
import type { Config } from './config.ts'

/** The options of a hub, by the settings. */
export function hubOptionsOf(config: Config, onWarning: (message: string) => void): Omit<HubOptions, 'log' | 'limits'> {
  const { heartbeatMs, retryMs, stallTimeoutMs, hotBytes, maxTailSilenceMs, whenDown } = config
  const {
    retries = {},
    retain = [],
    fromStart = [],
    defaultChannel,
    snapshots,
    maxReplayEvents,
    maxReplayAgeMs,
  } = config
  return {
    heartbeatMs,
    retryMs,
    retries,
    stallTimeoutMs,
    hotBytes,
    retain,
    fromStart,
    maxTailSilenceMs,
    whenDown,
    ...(defaultChannel !== undefined && { defaultChannel }),
    ...(snapshots !== undefined && snapshotsBy(snapshots, onWarning)),
    ...(maxReplayEvents !== undefined && { maxReplayEvents }),
    ...(maxReplayAgeMs !== undefined && { maxReplayAgeMs }),
  }
}

/** The options that all kinds of logs share, by the settings. */
export function logOptionsOf({ window, windows = {}, ids, logMaxBytes }: Config) {
  return {
    window,
    windows,
    ...(ids !== undefined && { codec: idCodecOf(ids) }),
    ...(logMaxBytes !== undefined && { maxBytes: logMaxBytes }),
  }
}

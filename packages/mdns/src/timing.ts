import { type Environment, systemEnvironment } from '@rejoin/hub'

/**
 * Clock, timers and chance, as an argument, so that tests have no sleeps. `now` only goes forward, unlike a hub's
 * clock.
 */
export type Timing = Pick<Environment, 'now' | 'after' | 'random'>

/** A step of the wall clock must not make every record of the network look expired. */
export const systemTiming: Timing = { ...systemEnvironment, now: () => performance.now() }

export { type LogContractOptions, logContract } from './log-contract.ts'
export {
  type AnyHub,
  createTestHub,
  type Expiring,
  type Restarting,
  type TestClock,
  type TestHub,
  type TestHubOptions,
  type TestPage,
} from './test-hub.ts'
export {
  createRandom,
  createVirtualEnvironment,
  type VirtualEnvironment,
  type VirtualEnvironmentOptions,
} from './virtual-environment.ts'

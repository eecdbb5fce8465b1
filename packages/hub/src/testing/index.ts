export { type LogContractOptions, logContract } from './log-contract.ts'
export { createRandom, createVirtualEnvironment, type VirtualEnvironment } from './virtual-environment.ts'

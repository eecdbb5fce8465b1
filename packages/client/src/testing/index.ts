export { type AttachableHub, attachTo } from './attach-to.ts'
export { type Chaos, type ChaosOptions, chaosOf } from './chaos.ts'

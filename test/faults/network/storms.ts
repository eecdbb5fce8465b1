import { type FieldOptions, openField } from '../crowds/field.ts'

/**
 * Cuts all readers but some in one moment, keeps them away while events are published, and lets all of them back in one moment,
 * again and again. The others stay and read on.
 */
export async function runStorms(options: StormsOptions): Promise<void> {
  const { history, seed, storms, readers, stay, awayMs, afterStorm } = options
  history.write({ kind: 'run', name: 'storms', seed, inputs: { readers, stay, storms } })
  const field = await openField(options)
  await field.renewed()
  const cut = field.proxiedReaders.slice(stay)
  for (let storm = 1; storm <= storms; storm += 1) {
    history.write({ kind: 'fault', what: 'all are cut at once', readers: cut.map(({ who }) => who) })
    for (const { proxy } of cut) {
      proxy.reject('reset')
      proxy.cutAll('reset')
    }
    await new Promise((resolve) => setTimeout(resolve, awayMs))
    for (const { proxy } of cut) proxy.accept()
    history.write({ kind: 'heal', readers: cut.map(({ who }) => who) })
    await field.caughtUp(field.newest())
    await afterStorm?.(storm)
  }
  await field.finish()
}

export interface StormsOptions extends Omit<FieldOptions, 'onLink'> {
  readonly storms: number
  /** How many of the readers are never cut. */
  readonly stay: number
  readonly awayMs: number
  /** Called when all readers have caught up. The next storm waits until the promise resolves. */
  afterStorm?(storm: number): Promise<void>
}

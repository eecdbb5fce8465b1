import { type FieldOptions, openField } from '../crowds/field.ts'

/**
 * Takes the network away from all readers for a while, again and again. For every other reader it goes with a bang, resets
 * and rejections; for the others without a sound.
 */
export async function runDrops(options: DropsOptions): Promise<void> {
  const { history, seed, drops, readers, onProgress } = options
  history.write({ kind: 'run', name: 'drops', seed, inputs: { readers, drops } })
  const field = await openField(options)
  await field.renewed()
  for (const seconds of drops) {
    history.write({ kind: 'fault', what: `no network for ${seconds} s` })
    field.proxiedReaders.forEach(({ proxy }, index) => {
      const silent = index % 4 >= 2
      proxy.reject(silent ? 'silence' : 'reset')
      proxy.cutAll(silent ? 'half-open' : 'reset')
    })
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    for (const { proxy } of field.proxiedReaders) proxy.accept()
    history.write({ kind: 'heal' })
    await field.caughtUp(field.newest())
    onProgress?.(seconds)
  }
  await field.finish()
}

export interface DropsOptions extends Omit<FieldOptions, 'onLink'> {
  /** In seconds, one after the other. */
  readonly drops: readonly number[]
  onProgress?(seconds: number): void
}

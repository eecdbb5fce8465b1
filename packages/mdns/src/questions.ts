import type { KnownAnswer, Query, Question } from './network.ts'

/** Collects questions, each once, and puts them into packets. */
export function createQuestions(typeName: string) {
  const asked = new Map<string, Question>()

  return {
    /** Adds a question. False when its name cannot be written into a packet as it was read from one. */
    add(question: Question): boolean {
      if (!isWritable(question.name, typeName)) return false
      asked.set(`${question.type} ${question.name}`, question)
      return true
    },

    /** As few packets as hold all questions. The first packet also carries known answers, as far as it has room. */
    queries(known: () => Iterable<KnownAnswer>): Query[] {
      const questions = [...asked.values()]
      const asksForType = questions.some(({ type }) => type === 'PTR')
      const packets: Query[] = []
      for (let at = 0; at < questions.length; at += questionsInPacket) {
        const isFirst = packets.length === 0
        packets.push({
          questions: questions.slice(at, at + questionsInPacket),
          known: isFirst && asksForType ? fitting(known(), typeName) : [],
        })
      }
      return packets
    },
  }
}

// These limits fit into an Ethernet frame of 1,472 bytes: names are seldom over 60 bytes.
const questionsInPacket = 12
const knownBytes = 700

/** As many known answers as there is room for. An answer that is left out is sent again, which does no harm. */
function fitting(known: Iterable<KnownAnswer>, typeName: string): KnownAnswer[] {
  const answers: KnownAnswer[] = []
  let bytes = 0
  for (const answer of known) {
    if (!isWritable(answer.data, typeName)) continue
    bytes += answer.data.length + answer.name.length + 16
    if (bytes > knownBytes) break
    answers.push(answer)
  }
  return answers
}

/**
 * Whether a name can be split at its dots into the labels that it was made of. A dot inside the label of an instance
 * looks like a dot between labels, and bytes that were no UTF-8 are lost. Such an instance is asked for by its type.
 */
export function isWritable(name: string, typeName: string): boolean {
  const isInstance = name.toLowerCase().endsWith(`.${typeName}`)
  const labels = isInstance ? [name.slice(0, -typeName.length - 1)] : name.replace(/\.$/, '').split('.')
  return labels.every(
    (label) => label !== '' && !/[.\r\n\u2028\u2029\ufffd]/.test(label) && Buffer.byteLength(label) <= 63,
  )
}

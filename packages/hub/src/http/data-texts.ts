import { RejoinError } from '@rejoin/protocol'

// Some readers' JSON parsers recurse: deeper data would be an attack on one of them.
const maxDepth = 100

/**
 * The text of each event's `data`, as it stands in the body of a publish: one event, or an array of them. Parsed and written
 * again, a number that JavaScript cannot hold would become another one: 9007199254740993 would end in 2, and 1e400 would be
 * null. Throws when the body is nested too deep.
 *
 * @param body - valid JSON; the scan relies on that
 */
export function dataTexts(body: string): (string | undefined)[] {
  const scan = new Scan(body)
  return scan.isAt(openArray) ? scan.events() : [scan.event()]
}

/** Character codes, because a comparison of numbers is what makes this faster than to write the data again. */
const quote = 0x22
const comma = 0x2c
const backslash = 0x5c
const openArray = 0x5b
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d
const space = 0x20

class Scan {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.#skipSpace()
  }

  isAt(code: number): boolean {
    return this.#text.charCodeAt(this.#at) === code
  }

  events(): (string | undefined)[] {
    const texts: (string | undefined)[] = []
    this.#open()
    while (!this.isAt(closeArray)) {
      texts.push(this.event())
      this.#skipSeparator()
    }
    return texts
  }

  /** Leaves the scan behind it. Undefined for a value that is no event; what is wrong with it is told elsewhere. */
  event(): string | undefined {
    if (!this.isAt(openObject)) {
      this.#skipValue()
      return undefined
    }
    let data: string | undefined
    this.#open()
    while (!this.isAt(closeObject)) {
      const isData = this.#key()
      const start = this.#at
      this.#skipValue()
      // Of two, the last counts, as with JSON.parse.
      if (isData) data = this.#text.slice(start, this.#at)
      this.#skipSeparator()
    }
    this.#close()
    return data
  }

  /** Skips a key and its colon; true when the key is `data`. */
  #key(): boolean {
    const start = this.#at
    this.#skipString()
    const key = this.#text.slice(start, this.#at)
    this.#skipSpace()
    this.#at += 1
    this.#skipSpace()
    return key === '"data"' || (key.includes('\\') && JSON.parse(key) === 'data')
  }

  #skipValue(): void {
    if (this.isAt(quote)) this.#skipString()
    else if (this.isAt(openObject) || this.isAt(openArray)) this.#skipNested()
    else this.#skipWord()
  }

  /** An object or an array, whatever is in it. */
  #skipNested(): void {
    const text = this.#text
    const outside = this.#depth
    do {
      const code = text.charCodeAt(this.#at)
      if (code === quote) {
        this.#skipString()
        continue
      }
      if (code === openObject || code === openArray) this.#deeper()
      else if (code === closeObject || code === closeArray) this.#depth -= 1
      this.#at += 1
    } while (this.#depth > outside)
  }

  #skipString(): void {
    const text = this.#text
    let end = this.#at
    do end = text.indexOf('"', end + 1)
    while (isEscaped(text, end))
    this.#at = end + 1
  }

  /** A number, true, false or null. */
  #skipWord(): void {
    const text = this.#text
    let code = text.charCodeAt(this.#at)
    while (code > space && code !== comma && code !== closeObject && code !== closeArray) {
      this.#at += 1
      code = text.charCodeAt(this.#at)
    }
  }

  #skipSeparator(): void {
    this.#skipSpace()
    if (!this.isAt(comma)) return
    this.#at += 1
    this.#skipSpace()
  }

  #skipSpace(): void {
    while (this.#text.charCodeAt(this.#at) <= space) this.#at += 1
  }

  #open(): void {
    this.#deeper()
    this.#at += 1
    this.#skipSpace()
  }

  #close(): void {
    this.#depth -= 1
    this.#at += 1
  }

  #deeper(): void {
    this.#depth += 1
    if (this.#depth <= maxDepth) return
    throw new RejoinError(`The data is nested more than ${maxDepth} levels deep. Flatten it, or send it as text.`, {
      code: 'invalid-data',
    })
  }
}

/** Whether the quote at this position is part of the string: an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (text.charCodeAt(before) === backslash) before -= 1
  return (at - before) % 2 === 0
}

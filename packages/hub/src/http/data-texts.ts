import { RejoinError } from '@rejoin/protocol'

// JSON parsers of some readers recurse, and deeper data could crash them.
const maxDepth = 100

/**
 * The text of each event's `data`, as it stands in the body of a publish: one event, or an array of events. Parsing the data
 * and writing it again would change numbers that JavaScript cannot hold: 9007199254740993 would end in 2, and 1e400 would
 * become null. Throws when the body is nested too deep.
 *
 * @param body - valid JSON; the scan relies on that
 */
export function dataTexts(body: string): (string | undefined)[] {
  const scan = new Scan(body)
  return scan.isAt(openArray) ? scan.events() : [scan.event()]
}

/**
 * Throws when the body is nested too deep.
 *
 * @param body - valid JSON
 */
export function assertShallow(body: string): void {
  // Each level takes two characters.
  if (body.length > 2 * maxDepth) new Scan(body).value()
}

/** Character codes: comparing numbers is what makes this scan faster than writing the data again. */
const quote = 0x22
const comma = 0x2c
const backslash = 0x5c
const openArray = 0x5b
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d
const space = 0x20

const dataKey = '"data"'
// An escape of one letter takes six characters: "d\u0061ta".
const shortestEscaped = dataKey.length + 5

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

  value(): void {
    this.#skipValue()
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

  /** Reads one event, and leaves the scan behind it. Undefined without `data` and for a value that is no event. */
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
      // Of two `data` keys the last counts, as with JSON.parse.
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
    const end = this.#at
    this.#skipSpace()
    this.#at += 1
    this.#skipSpace()
    // Compared in place: a slice of each key would be a string for every key of a batch.
    if (end - start === dataKey.length) return this.#text.startsWith(dataKey, start)
    if (end - start < shortestEscaped) return false
    const key = this.#text.slice(start, end)
    return key.includes('\\') && JSON.parse(key) === 'data'
  }

  #skipValue(): void {
    if (this.isAt(quote)) this.#skipString()
    else if (this.isAt(openObject) || this.isAt(openArray)) this.#skipNested()
    else this.#skipWord()
  }

  /** Skips an object or an array. */
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

  /** Skips a number, true, false or null. */
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

/** Whether the quote at `at` belongs to the string: an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (text.charCodeAt(before) === backslash) before -= 1
  return (at - before) % 2 === 0
}

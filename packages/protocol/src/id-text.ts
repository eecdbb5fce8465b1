/**
 * Whether a text is valid as an id: 1 to 128 bytes of printable ASCII, without spaces and without `"():<>?@[\]{},`
 * (§2.6). Any other text would break the next request of a fetch client, or its preflight.
 */
export function isIdText(text: string): boolean {
  if (text.length === 0 || text.length > maxLength) return false
  for (let index = 0; index < text.length; index += 1) {
    if (isAllowed[text.charCodeAt(index)] !== 1) return false
  }
  return true
}

const maxLength = 128

// A table, because the id of every event is checked, and a regular expression for the whole id takes half again as long.
const isAllowed = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[!#-'*+\-./0-9;=A-Z^-z|~]/.test(String.fromCharCode(code))),
)

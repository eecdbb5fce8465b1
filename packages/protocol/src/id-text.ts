/**
 * Whether a text is valid as an id: 1 to 128 bytes of printable ASCII, without spaces and without `"():<>?@[\]{},`
 * (§2.6). Any other text would break the next request of a fetch client, or its preflight.
 */
export function isIdText(text: string): boolean {
  return idText.test(text)
}

const idText = /^[!#-'*+\-./0-9;=A-Z^-z|~]{1,128}$/

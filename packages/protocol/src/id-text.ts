/**
 * Whether this text can stand as an id: 1 to 128 bytes of printable ASCII, without spaces and without `"():<>?@[\]{},`
 * (§2.6). Anything else would break a fetch client's next request or its preflight.
 */
export function isIdText(text: string): boolean {
  return idText.test(text)
}

const idText = /^[!#-'*+\-./0-9;=A-Z^-z|~]{1,128}$/

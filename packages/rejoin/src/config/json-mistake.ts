import type { ParseError } from 'jsonc-parser'

/** What is wrong first in a text that is not JSON, with line and column. Quotes nothing of the text, which may hold secrets. */
export async function jsonMistake(text: string): Promise<string> {
  // Loaded on demand, because almost no start needs it.
  const { parseTree, printParseErrorCode } = await import('jsonc-parser')
  const mistakes: ParseError[] = []
  parseTree(text, mistakes, { disallowComments: true })
  const [mistake] = mistakes
  const lines = text.slice(0, mistake?.offset).trimEnd().split('\n')
  const what = mistake && whatIsWrong[printParseErrorCode(mistake.error)]
  return `${what ?? 'there is a mistake'} at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
}

const whatIsWrong: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word without double quotes',
  InvalidNumberFormat: 'a number that cannot be read',
  PropertyNameExpected: 'a name in double quotes is missing',
  ValueExpected: 'a value is missing',
  ColonExpected: 'a colon is missing',
  CommaExpected: 'a comma is missing',
  CloseBraceExpected: 'a closing brace is missing',
  CloseBracketExpected: 'a closing bracket is missing',
  EndOfFileExpected: 'more text follows the end',
  InvalidCommentToken: 'a comment, which JSON does not have,',
  UnexpectedEndOfComment: 'a comment, which JSON does not have,',
  UnexpectedEndOfString: 'a text without its closing quotes',
  UnexpectedEndOfNumber: 'a number that breaks off',
  InvalidUnicode: 'a wrong \\u escape',
  InvalidEscapeCharacter: 'a wrong escape after a backslash',
  InvalidCharacter: 'a character that has to be escaped',
}

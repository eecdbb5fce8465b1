/** Who may do what, as an operator writes it. Left out altogether, there are no rules and the hub stays on its machine. */
export interface AccessRules {
  /**
   * Tokens that are believed. A token is good when one of these says so; each has keys of its own, so those who may
   * publish and those who may read can be told apart by who signed for them.
   * @defaultValue [], no JWT is believed
   */
  jwt?: readonly JwtRule[]
  /**
   * Keys that are not tokens: long random texts, known here by their hash alone.
   * @defaultValue [], there are none
   */
  keys?: readonly ApiKeyRule[]
  /**
   * What a request may do that presents nothing at all. One that presents something wrong is rejected whatever stands here.
   * @defaultValue {}, nothing: it is answered with 401
   */
  anonymous?: RightsRule
  /**
   * Name of the cookie in which a token may come. Requests that count on it are rejected when they come from a page of
   * another origin than the hub's own and those in `cors`.
   * @defaultValue none: cookies are not read
   */
  cookie?: string
  /**
   * Origins whose pages may use the hub, written as browsers send them: `https://app.example.com`. `*` stands for any page,
   * but then without cookies.
   * @defaultValue [], only pages of the hub's own origin
   */
  cors?: readonly string[]
  /**
   * Names under which the hub may be addressed, without a port; `*.example.com` is every name below it. Requests for others get
   * 403. Set it where anonymous requests have rights: a page of any site can point its own name at the hub (DNS rebinding) and
   * then has those rights in the browser of whoever looks at it.
   * @defaultValue [], any name
   */
  hosts?: readonly string[]
  /**
   * For how long a ticket can be used, from 1,000 to 60,000 ms. Shorter leaves less time to who reads it in a proxy's log;
   * longer bears with slower networks.
   * @defaultValue 30000
   */
  ticketMs?: number
}

/** Channels, or prefixes ending in `/*`; `*` is all. */
export interface RightsRule {
  /** @defaultValue [], none may be read */
  subscribe?: readonly string[]
  /** @defaultValue [], none may be published to */
  publish?: readonly string[]
}

export interface ApiKeyRule extends RightsRule {
  /** Who has it. Its subject is `key:<name>`, in limits, idempotency keys and revocations. */
  name: string
  /** SHA-256 of the key, 64 hex digits: `printf %s "$KEY" | sha256sum`. The key itself has at least 32 characters. */
  sha256: string
}

/** Exactly one of `secret`, `publicKey` and `jwks` says with what key. */
export interface JwtRule {
  /**
   * A secret shared with whoever signs, of at least 32 bytes, for HS256, HS384 and HS512. Whoever knows it can make tokens.
   */
  secret?: string
  /** A public key as PEM (`-----BEGIN PUBLIC KEY-----`), for RSA of at least 2,048 bits, EC and Ed25519. */
  publicKey?: string
  /**
   * A JSON Web Key Set: an https address, or a file. An address is read again every five minutes, and earlier, but at most
   * every 30 seconds, when a token names a key that is not in it; a file every two seconds. Needs `issuer` and `audience`,
   * because such keys sign for others as well.
   */
  jwks?: string
  /**
   * What a token may be signed with. A key is used with these alone, never with what a token says of itself.
   * @defaultValue HS256 for a secret; what fits the public key; RS256, ES256 and EdDSA for a key set
   */
  algorithms?: readonly JwtAlgorithm[]
  /**
   * The `iss` that a token must have, or one of several.
   * @defaultValue any
   */
  issuer?: string | readonly string[]
  /**
   * The `aud` that a token must name, or one of several.
   * @defaultValue none: a token that names an audience is meant for somebody else, and rejected
   */
  audience?: string | readonly string[]
  /**
   * The `typ` that a token's header must have. Set it when the same key also signs tokens of other kinds.
   * @defaultValue `JWT`, `at+jwt` or none
   */
  typ?: string
  /**
   * The claim that holds the rights: `{"subscribe": ["orders/*"], "publish": []}`.
   * @defaultValue 'rejoin'
   */
  claim?: string
  /**
   * What these tokens are good for, whatever they claim. With one key for each, a reader's key that leaks publishes nothing.
   * @defaultValue ['subscribe', 'publish']
   */
  gives?: readonly ('subscribe' | 'publish')[]
}

export const jwtAlgorithms = [
  'HS256',
  'HS384',
  'HS512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const

export type JwtAlgorithm = (typeof jwtAlgorithms)[number]

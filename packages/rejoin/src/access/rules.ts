/** The access rules, as an operator writes them. Without any rules, the hub serves its own machine only. */
export interface AccessRules {
  /**
   * Rules for tokens (JWT). A token is good when one rule accepts it. Each rule has keys of its own, so one key can sign for
   * publishers and another for readers.
   * @defaultValue [], no token is accepted
   */
  jwt?: readonly JwtRule[] | undefined
  /**
   * API keys: long random texts, of which the hub knows the hash alone.
   * @defaultValue [], there are none
   */
  keys?: readonly ApiKeyRule[] | undefined
  /**
   * Rights of requests without any credential. A request with a wrong credential is rejected whatever is set here.
   * @defaultValue {}, none: such a request is answered with 401
   */
  anonymous?: RightsRule | undefined
  /**
   * Name of the cookie in which a token may come. A request that relies on the cookie is rejected unless its page is of the hub's
   * own origin or of an origin in `cors`.
   * @defaultValue none: cookies are not read
   */
  cookie?: string | undefined
  /**
   * Origins whose pages may use the hub, written as browsers send them: `https://app.example.com`. `*` lets in pages of any
   * origin, but without cookies.
   * @defaultValue [], only pages of the hub's own origin
   */
  cors?: readonly string[] | undefined
  /**
   * Host names of the hub, without a port; `*.example.com` is every name below it. Requests for other names get 403. Set it when
   * anonymous requests have rights: a page of any site can point its own name at the hub (DNS rebinding), and then has these
   * rights in the browser of each visitor.
   * @defaultValue [], any name
   */
  hosts?: readonly string[] | undefined
  /**
   * For how long a ticket can be used, from 1,000 to 60,000 ms. Shorter leaves less time to a thief who finds the ticket in a
   * proxy's log; longer suits slower networks.
   * @defaultValue 30000
   */
  ticketMs?: number | undefined
}

/** Lists of channels and prefixes that end in `/*`; `*` is every channel. */
export interface RightsRule {
  /**
   * Channels that may be read.
   * @defaultValue [], none
   */
  subscribe?: readonly string[] | undefined
  /**
   * Channels that may be published to.
   * @defaultValue [], none
   */
  publish?: readonly string[] | undefined
}

export interface ApiKeyRule extends RightsRule {
  /** Name of the owner. The subject of the key is `key:<name>`, in limits, idempotency keys and revocations. */
  name: string
  /** SHA-256 of the key, 64 hex digits: `printf %s "$KEY" | sha256sum`. The key itself has at least 32 characters. */
  sha256: string
}

/** A rule for tokens. Exactly one of `secret`, `publicKey` and `jwks` gives its key. */
export interface JwtRule {
  /**
   * A secret shared with the signer of the tokens, for HS256 (at least 32 bytes), HS384 (48) and HS512 (64). Everybody who knows
   * it can make tokens.
   */
  secret?: string | undefined
  /** A public key as PEM (`-----BEGIN PUBLIC KEY-----`), for RSA of at least 2,048 bits, EC and Ed25519. */
  publicKey?: string | undefined
  /**
   * A JSON Web Key Set: an https address, or a file. An address is read every five minutes, and earlier when a token names a key
   * that is not in it, but then at most every 30 seconds. A file is read every two seconds. Needs `issuer` and `audience`,
   * because the same keys sign tokens for other programs.
   */
  jwks?: string | undefined
  /**
   * Algorithms that tokens may be signed with. The header of a token cannot choose another.
   * @defaultValue HS256 for a secret; what fits the public key; RS256, ES256 and EdDSA for a key set
   */
  algorithms?: readonly JwtAlgorithm[] | undefined
  /**
   * The `iss` that a token must have; of a list, any one.
   * @defaultValue any
   */
  issuer?: string | readonly string[] | undefined
  /**
   * The `aud` that a token must name; of a list, any one.
   * @defaultValue none: a token that names an audience is meant for another program, and rejected
   */
  audience?: string | readonly string[] | undefined
  /**
   * The `typ` in a token's header. Set it when the same key also signs tokens of other kinds.
   * @defaultValue `JWT`, `at+jwt` or none
   */
  typ?: string | undefined
  /**
   * The claim that holds the rights: `{"subscribe": ["orders/*"], "publish": []}`.
   * @defaultValue 'rejoin'
   */
  claim?: string | undefined
  /**
   * Rights that these tokens can give, whatever they claim. With a rule for readers alone, its leaked key cannot publish.
   * @defaultValue ['subscribe', 'publish']
   */
  gives?: readonly ('subscribe' | 'publish')[] | undefined
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

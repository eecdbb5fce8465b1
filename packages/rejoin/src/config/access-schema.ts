import * as v from 'valibot'
import { type ApiKeyRule, type JwtRule, jwtAlgorithms } from '../access/rules.ts'

const texts = v.array(v.string())
const rights = { subscribe: v.optional(texts), publish: v.optional(texts) }

// Checked here already: `rejoin config` prints every value that passes, and it must not print a key.
const sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i))

/** The shape of access rules. Their content is checked in `access/`, which knows weak keys. */
export const apiKeys = v.array(v.strictObject({ name: v.string(), sha256, ...rights }))

export const jwtRules = v.array(
  v.strictObject({
    secret: v.optional(v.string()),
    publicKey: v.optional(v.string()),
    jwks: v.optional(v.string()),
    algorithms: v.optional(v.array(v.picklist(jwtAlgorithms))),
    issuer: v.optional(v.union([v.string(), texts])),
    audience: v.optional(v.union([v.string(), texts])),
    typ: v.optional(v.string()),
    claim: v.optional(v.string()),
    gives: v.optional(v.array(v.picklist(['subscribe', 'publish']))),
  }),
)

// The compiler compares the schemas with the documented types: a new field has to be added in both.
type Same<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? true : never
true satisfies Same<v.InferOutput<typeof apiKeys>[number], ApiKeyRule>
true satisfies Same<v.InferOutput<typeof jwtRules>[number], JwtRule>

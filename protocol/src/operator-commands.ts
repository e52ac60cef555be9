// Results that the API's operator commands print as JSON on stdout, and that the supervisor reads.
import { z } from 'zod';

/**
 * The first account, org, project and key. `token` is the only copy of the key; `welcomePath` is
 * the page on which the owner takes the account over, with its token.
 */
export const bootstrapResult = z.discriminatedUnion('created', [
  z.object({
    created: z.literal(true),
    orgId: z.string(),
    projectId: z.string(),
    userId: z.string(),
    keyId: z.string(),
    token: z.string(),
    welcomePath: z.string().startsWith('/'),
  }),
  z.object({ created: z.literal(false), orgId: z.string(), projectId: z.string().nullable(), userId: z.string() }),
]);
export type BootstrapResult = z.infer<typeof bootstrapResult>;

/** A new API key; `token` is the only copy. */
export const mintedKey = z.object({
  keyId: z.string(),
  orgId: z.string(),
  name: z.string(),
  token: z.string(),
  expiresAt: z.string().nullable(),
});
export type MintedKey = z.infer<typeof mintedKey>;

/**
 * A link with which the owner of the first org can sign in: a welcome for an account without a
 * password, a new password otherwise. `path` has the token in its query.
 */
export const ownerLink = z.object({
  kind: z.enum(['welcome', 'reset_password']),
  path: z.string().startsWith('/'),
  email: z.string(),
  minutes: z.number(),
});
export type OwnerLink = z.infer<typeof ownerLink>;

/** An org's plan, and its previous one with its status; null: it had none. */
export const planChange = z.object({
  orgId: z.string(),
  plan: z.string(),
  before: z.object({ plan: z.string(), status: z.string() }).nullable(),
});
export type PlanChange = z.infer<typeof planChange>;

// JSON results that the API's operator commands print on stdout, read by the supervisor.
import { z } from 'zod';

/**
 * The first account, org, project and key. `token` is the only copy of the key. `welcomePath`, with
 * its token, is the page on which the owner takes over the account.
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

/** A new API key; `token` is its only copy. */
export const mintedKey = z.object({
  keyId: z.string(),
  orgId: z.string(),
  name: z.string(),
  token: z.string(),
  expiresAt: z.string().nullable(),
});
export type MintedKey = z.infer<typeof mintedKey>;

/**
 * Sign-in link for the owner of the operator's org: a welcome for an account without a password,
 * otherwise a password reset. `path` has the token in its query.
 */
export const ownerLink = z.object({
  kind: z.enum(['welcome', 'reset_password']),
  path: z.string().startsWith('/'),
  email: z.string(),
  minutes: z.number(),
});
export type OwnerLink = z.infer<typeof ownerLink>;

const secretKeyState = z.object({
  id: z.string(),
  current: z.boolean(),
  /** Stored values that it sealed. */
  values: z.number(),
  /** Remaining lifetime of signatures made with it. */
  neededSeconds: z.number(),
});
export type SecretKeyState = z.infer<typeof secretKeyState>;

/** The secret keys and host tokens of the files, by id, the current one first; live replicas. */
export const secretsState = z.object({
  secretKeys: z.array(secretKeyState),
  hostTokenIds: z.array(z.string()),
  replicas: z.array(z.object({ secretKeyIds: z.array(z.string()), hostTokenIds: z.array(z.string()) })),
  /** Stored values of keys that the file lacks, or of earlier releases, which name no key. */
  otherValues: z.number(),
});
export type SecretsState = z.infer<typeof secretsState>;

/** An org whose requirement of single sign-on ended; `before`: it was in force. */
export const ssoChange = z.object({ orgId: z.string(), before: z.boolean() });
export type SsoChange = z.infer<typeof ssoChange>;

/** An org's plan, and its previous plan with status; null: none. */
export const planChange = z.object({
  orgId: z.string(),
  plan: z.string(),
  before: z.object({ plan: z.string(), status: z.string() }).nullable(),
});
export type PlanChange = z.infer<typeof planChange>;

// Reads the OIDC provider's metadata and its claims about a person, with timeouts, and rejects
// inconsistent ones. The library has already verified the id token's signature, nonce, issuer,
// audience and age.
import { NAME_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import type { OidcConfig } from '../config/config.ts';

const ANSWER_MS = 5_000;

const discoveryDocument = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  jwks_uri: z.url(),
  userinfo_endpoint: z.url().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
});
type DiscoveryDocument = z.output<typeof discoveryDocument>;

/** Some providers encode the boolean as text. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]);
const personClaims = z.object({
  sub: z.string().min(1).max(255),
  email: z.email().max(254).optional(),
  email_verified: flag.optional(),
  name: z.string().optional(),
  preferred_username: z.string().optional(),
});
const idTokenClaims = personClaims.extend({
  aud: z.union([z.string(), z.array(z.string())]),
  azp: z.string().optional(),
  exp: z.number(),
});

/** A person known to the provider. */
interface ProviderPerson {
  sub: string;
  email: string | undefined;
  emailVerified: boolean;
  name: string;
}

export function discoveryUrl(issuer: string): string {
  return `${withoutSlash(issuer)}/.well-known/openid-configuration`;
}

/** Throws if the provider does not respond in time, or responds with an unusable document. */
export async function discover(issuer: string): Promise<DiscoveryDocument> {
  const document = discoveryDocument.parse(await fetchJson(discoveryUrl(issuer), {}));
  if (withoutSlash(document.issuer) !== withoutSlash(issuer))
    throw new Error(`the provider reports the issuer ${document.issuer}, not ${issuer}`);

  return document;
}

/**
 * The person of a verified id token; missing claims come from the provider's userinfo endpoint.
 * Throws if the two are inconsistent.
 */
export async function readPerson(
  config: Pick<OidcConfig, 'clientId'>,
  document: DiscoveryDocument,
  tokens: { idToken?: string | undefined; accessToken?: string | undefined },
): Promise<ProviderPerson> {
  if (tokens.idToken === undefined) throw new Error('the provider returned no id token');
  const payload = Buffer.from(tokens.idToken.split('.')[1] ?? '', 'base64url').toString();
  const { aud, azp, ...claims } = idTokenClaims.parse(JSON.parse(payload));
  if (Array.isArray(aud) && aud.length > 1 && azp !== config.clientId)
    throw new Error('the id token was issued for another client');
  if (claims.email !== undefined || document.userinfo_endpoint === undefined || tokens.accessToken === undefined)
    return person(claims);
  const more = personClaims.parse(
    await fetchJson(document.userinfo_endpoint, { authorization: `Bearer ${tokens.accessToken}` }),
  );
  if (more.sub !== claims.sub) throw new Error('the userinfo endpoint returned another subject than the id token');
  return person({ ...claims, ...more });
}

function person(claims: z.output<typeof personClaims>): ProviderPerson {
  const name = [claims.name, claims.preferred_username, claims.email?.split('@', 1)[0], claims.sub]
    .map((text) => text?.trim().slice(0, NAME_CHARACTERS) ?? '')
    .find((text) => text !== '');
  return {
    sub: claims.sub,
    email: claims.email,
    emailVerified: claims.email_verified ?? false,
    name: name ?? claims.sub,
  };
}

async function fetchJson(url: string, headers: Record<string, string>): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: 'application/json', ...headers },
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (!response.ok) throw new Error(`the provider returned ${response.status} at ${url}`);
  return await response.json();
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

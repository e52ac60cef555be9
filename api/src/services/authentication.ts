// From a bearer token to who calls. Knows the kinds of tokens; what the caller may do is decided in access.ts.
import { role as roleName } from '@berth/contract/permissions.ts';
import type { Actor } from '../rules/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { findApiKeyByHash, touchApiKey } from '../store/api-keys.ts';
import { isToken, tokenSha256 } from './api-key-token.ts';
import type { ServiceContext } from './context.ts';

export type { Actor };

/** The token of an `Authorization` header. Throws `unauthenticated`, also when its checksum is wrong: such a token costs no query. */
export function readToken(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthenticated('a bearer token is needed: send the header Authorization: Bearer <API key>');
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('the header Authorization must have the form: Bearer <API key>');
  if (!isToken(token)) throw unauthenticated('the bearer token is not an API key of this service (brt_...), or was not copied whole');
  return token;
}

/** Who holds a token of the right form. Throws `unauthenticated`. */
export async function authenticate(context: ServiceContext, token: string): Promise<Actor> {
  const key = await findApiKeyByHash(context.db, tokenSha256(token));
  if (key === undefined) throw unauthenticated('this API key is unknown');
  if (key.revoked_at !== null) throw unauthenticated(`this API key was revoked at ${key.revoked_at.toISOString()}`);
  if (key.expired) throw unauthenticated(`this API key expired at ${key.expires_at?.toISOString()}`);
  if (key.created_by === null) throw unauthenticated("this API key's creator no longer has an account");

  if (!key.used_lately) {
    // Off the answer's path: when it fails, the key's `last_used_at` is late by one request.
    touchApiKey(context.db, key.id).catch((error: unknown) =>
      context.log.warn({ err: error, keyId: key.id }, 'could not note the use of a key'),
    );
  }
  return {
    kind: 'api_key',
    id: key.id,
    userId: key.created_by,
    orgId: key.org_id,
    scopes: key.scopes === null ? null : new Set(key.scopes),
    role: roleName.safeParse(key.role).data ?? null,
  };
}

function unauthenticated(message: string): CodedError {
  return new CodedError('unauthenticated', message);
}

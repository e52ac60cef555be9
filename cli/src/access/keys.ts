// `berth key ls`, `create` and `revoke`: the API keys of an org.
import { PERMISSIONS, type Permission } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since, until } from '../output/time.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { checkResourceId } from '../service/resource-id.ts';
import { suggestions } from './suggestions.ts';
import type { Input } from '../program/command-spec.ts';

interface KeyOptions {
  scope?: readonly string[];
  expiresInDays?: number;
}

export async function listKeys({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.listApiKeys({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name },
      { title: 'prefix', value: ({ tokenPrefix }) => tokenPrefix },
      { title: 'scopes', value: ({ scopes }) => scopesInWords(scopes) },
      { title: 'sso', value: ({ viaSso }) => (viaSso ? 'yes' : 'no') },
      { title: 'state', value: stateOf },
      { title: 'last used', value: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : since(lastUsedAt)) },
    ],
    answer.apiKeys,
    'no API keys; create one with berth key create NAME',
  );
}

export async function createKey(
  { connect, out, signal }: CliContext,
  { args: [name = ''], options }: Input<KeyOptions>,
): Promise<void> {
  const { scope, expiresInDays } = options;
  const scopes = scope?.map(checkScope);
  const { berth, orgId } = await connect();
  const body = {
    name,
    ...(scopes === undefined ? {} : { scopes }),
    ...(expiresInDays === undefined ? {} : { expiresInDays }),
  };
  const answer = await berth.raw.createApiKey({ path: { orgId: await orgId() }, body, signal });
  if (out.json) return out.object(answer);
  const { apiKey, token } = answer;
  out.line(token);
  out.note(
    `the key ${apiKey.id} (${plainText(apiKey.name)}): ${stateOf(apiKey)}, scopes: ${scopesInWords(apiKey.scopes)}`,
  );
  out.hint('the key is shown only once; revoke it with berth key revoke');
}

export async function revokeKey(context: CliContext, { args: [typed], options }: Input<{ yes?: true }>): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const keyId = checkResourceId('key', typed);
  await confirmLoss(context, `Revoke the key ${keyId}? Clients that use it will be refused.`, options);
  const answer = await berth.raw.revokeApiKey({ path: { orgId: await orgId(), keyId }, signal });
  if (out.json) out.object(answer);
  else out.line(`revoked the key ${keyId} (${plainText(answer.apiKey.name)})`);
}

function checkScope(typed: string): Permission {
  const known = PERMISSIONS.find((name) => name === typed);
  if (known !== undefined) return known;
  const similar = suggestions(typed, PERMISSIONS);
  throw new UsageError(
    `unknown scope '${plainText(typed)}'${similar.length === 0 ? '' : `; did you mean ${similar.join(' or ')}?`}`,
    {
      remedy: `valid scopes: ${PERMISSIONS.join(', ')}`,
    },
  );
}

function scopesInWords(scopes: readonly string[] | null): string {
  if (scopes === null) return "the creator's";
  return scopes.length === 0 ? 'none' : scopes.join(', ');
}

/** State of a key or token: revoked, expired, or the time left. */
export function stateOf({ revokedAt, expiresAt }: { revokedAt: string | null; expiresAt: string | null }): string {
  if (revokedAt !== null) return `revoked ${since(revokedAt)}`;
  if (expiresAt === null) return 'does not expire';
  return `${Date.parse(expiresAt) < Date.now() ? 'expired' : 'expires'} ${until(expiresAt)}`;
}

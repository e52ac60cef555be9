// Preview visits for tests: links made by the API, signed-in people, and further replicas.
import assert from 'node:assert/strict';
import { readPreviewPlace } from '../../../src/rules/previews/host.ts';
import { PreviewAccessCache } from '../../../src/services/previews/access-cache.ts';
import { openPreview, type PreviewAccess, type PreviewRefusal } from '../../../src/services/previews/access.ts';
import { grantPreview, readTeamLink } from '../../../src/services/previews/sign-in.ts';
import { Changes } from '../../../src/store/database/changes.ts';
import type { TestApi } from '../../world/api.ts';

export interface MintedLink {
  /** Null for a team link. */
  id: string | null;
  sandboxId: string;
  port: number;
  token: string;
  expiresAt: string;
}

/** Creates a link through the API; records its token as a secret. */
export async function mintLink(
  api: TestApi,
  sandboxId: string,
  body: { port?: number; audience?: 'team' | 'public'; expiresInSeconds?: number; embeddable?: boolean } = {},
): Promise<MintedLink> {
  const port = body.port ?? 3_000;
  const answer = await api.call('POST', `/v1/sandboxes/${sandboxId}/previews`, { body: { port, ...body } });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { id, url, expiresAt } = answer.body.preview;
  return { id, sandboxId, port, token: tokenIn(api, url), expiresAt };
}

/** Returns the token in a preview URL. */
export function tokenIn(api: TestApi, url: string): string {
  const token = new URL(url).searchParams.get('token');
  assert.ok(token !== null, url);
  return api.secret(token, 'the token of a preview');
}

/** Visits the link's host, by default with its token only. */
export async function requestAccess(
  cache: PreviewAccessCache,
  link: MintedLink,
  brought: Partial<{ token: string | null; cookie: string | null; sandboxId: string; port: number }> = {},
): Promise<{ access?: PreviewAccess; refusal?: PreviewRefusal }> {
  const { sandboxId, port, token } = link;
  return await openPreview(cache, { sandboxId, port, token, cookie: null, ...brought });
}

/** Returns the cookie set by a visit. */
export function cookieOf(
  api: TestApi,
  { access, refusal }: { access?: PreviewAccess; refusal?: PreviewRefusal },
): string {
  const cookie = /^berth_preview=([^;]+);/.exec(access?.setCookie ?? '')?.[1];
  assert.ok(cookie !== undefined, `no cookie: ${JSON.stringify(refusal)}`);
  return api.secret(cookie, 'the cookie of a preview');
}

/** The link that a visitor of a team link comes with, after the service let the person on. */
export async function grantedLink(
  api: TestApi,
  link: MintedLink,
  person: { loginId: string; userId: string },
): Promise<MintedLink> {
  const team = readTeamLink(api.context, { link: link.token, sandbox: link.sandboxId, port: String(link.port) });
  assert.ok(team !== null);
  assert.deepEqual(readPreviewPlace(link.sandboxId, String(link.port)), { sandboxId: team.sandboxId, port: team.port });
  const way = await grantPreview(api.context, person, team, '/');
  assert.ok(typeof way === 'object', JSON.stringify(way));
  return { ...link, token: tokenIn(api, way.location) };
}

/** Starts another replica on the same database, with its own memory and listener. */
export async function startReplica(
  api: TestApi,
): Promise<{ cache: PreviewAccessCache; close(this: void): Promise<void> }> {
  const changes = new Changes(api.databaseUrl, (error) => api.context.log.warn({ err: error }));
  await changes.start();
  return { cache: new PreviewAccessCache({ ...api.context, changes }), close: () => changes.close() };
}

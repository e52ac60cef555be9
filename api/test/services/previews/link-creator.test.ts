// Public links end with the rights of their creator: an API key, or a member of the org.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PreviewAccessCache } from '../../../src/services/previews/access-cache.ts';
import { leasePreview } from '../../../src/services/previews/access.ts';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { cookieOf, requestAccess, startReplica, tokenIn, type MintedLink } from './links.ts';

let api: TestApi;
let replica: { cache: PreviewAccessCache; close(this: void): Promise<void> };
let owner: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  replica = await startReplica(api);
  owner = await api.makeSession({ role: 'owner' });
});
after(async () => {
  await replica.close();
  await api.close();
});

interface Made extends MintedLink {
  member: TestSession;
  keyId: string;
  url: string;
}

/** A member, a key of theirs, and a public link made with the key or by the member. */
async function make(by: 'key' | 'member'): Promise<Made> {
  const { id: sandboxId } = await api.makeSandbox('ready');
  const member = await api.makeSession({ role: 'admin' });
  const { apiKey, token: key } = (
    await api.call('POST', `/v1/orgs/${api.orgId}/api-keys`, { token: member.token, body: { name: 'a key' } })
  ).body;
  const { body, status } = await api.call('POST', `/v1/sandboxes/${sandboxId}/previews`, {
    token: by === 'key' ? key : member.token,
    body: { port: 3_000, audience: 'public', label: 'shop', endUserId: 'u-1' },
  });
  assert.equal(status, 201);
  const { id, url, expiresAt, inactiveReason } = body.preview;
  assert.equal(inactiveReason, null);
  return { id, sandboxId, port: 3_000, token: tokenIn(api, url), expiresAt, member, keyId: apiKey.id, url };
}

const ok = async (what: Promise<{ status: number }>): Promise<void> => assert.equal((await what).status, 200);
const memberPath = ({ member }: Made): string => `/v1/orgs/${api.orgId}/members/${member.userId}`;
const removeMember = (made: Made): Promise<void> => ok(api.call('DELETE', memberPath(made), { token: owner.token }));
const setRole = (made: Made, role: string): Promise<void> =>
  ok(api.call('PATCH', memberPath(made), { token: owner.token, body: { role } }));
const revokeKey = ({ keyId }: Made): Promise<void> =>
  ok(api.call('DELETE', `/v1/orgs/${api.orgId}/api-keys/${keyId}`, { token: owner.token }));
const leave = ({ member }: Made): Promise<void> =>
  ok(api.call('DELETE', `/v1/me/orgs/${api.orgId}`, { token: member.token }));
const deleteAccount = async ({ member }: Made): Promise<void> => {
  await api.db.deleteFrom('user').where('id', '=', member.userId).execute();
};

const listed = async ({
  sandboxId,
}: MintedLink): Promise<{ id: string; url: string | null; inactiveReason: unknown }[]> =>
  (await api.call('GET', `/v1/sandboxes/${sandboxId}/previews`)).body.previews;

async function untilState(cache: PreviewAccessCache, made: Made, wanted: string | undefined): Promise<void> {
  await untilTrue(`it is ${wanted ?? 'open'}`, async () => (await requestAccess(cache, made)).refusal === wanted);
}

for (const [by, what, end, reason] of [
  ['key', 'its key is revoked', revokeKey, 'api_key_revoked'],
  ['key', "its key's creator is removed", removeMember, 'creator_removed'],
  ['key', "its key's creator is demoted", (made) => setRole(made, 'operator'), 'creator_not_permitted'],
  ['member', 'its creator is removed', removeMember, 'creator_removed'],
  ['member', 'its creator leaves', leave, 'creator_removed'],
  ['member', 'its creator is demoted', (made) => setRole(made, 'viewer'), 'creator_not_permitted'],
  ['member', "its creator's account is deleted", deleteAccount, 'creator_removed'],
] as ['key' | 'member', string, (made: Made) => Promise<void>, string][]) {
  test(`a public link made by a ${by} stops working on every replica when ${what}`, async (context) => {
    const made = await make(by);
    const opened = await Promise.all(
      [api.previewAccess, replica.cache].map(async (cache) => ({ cache, visit: await requestAccess(cache, made) })),
    );
    const leases = opened.map(({ cache, visit }) => {
      assert.ok(visit.access !== undefined, JSON.stringify(visit.refusal));
      return leasePreview(cache, visit.access);
    });
    const ended: unknown[] = [];
    for (const { over } of leases) void over.then((why) => ended.push(why));
    // A lease that stays open must fail the test, and not hold its file.
    context.after(() => leases.forEach((lease) => lease.close()));
    const cookie = cookieOf(api, opened[0]?.visit ?? {});
    await end(made);
    await untilTrue('both leases are over', () => ended.length === leases.length);
    assert.deepEqual(ended, ['revoked', 'revoked']);
    for (const { cache } of opened) {
      await untilState(cache, made, 'revoked');
      assert.deepEqual(await requestAccess(cache, made, { token: null, cookie }), { refusal: 'revoked' });
    }
    assert.deepEqual(
      (await listed(made)).map(({ id, url, inactiveReason }) => ({ id, url, inactiveReason })),
      [{ id: made.id, url: null, inactiveReason: reason }],
    );
  });
}

test('a link survives the revocation of a key that did not make it', async () => {
  const made = await make('member');
  await revokeKey(made);
  assert.deepEqual(
    (await listed(made)).map(({ url, inactiveReason }) => [url, inactiveReason]),
    [[made.url, null]],
  );
  assert.ok((await requestAccess(replica.cache, made)).access !== undefined);
});

test("restoring the creator's role opens the link again; a revoked key never does", async () => {
  const [byMember, byKey] = [await make('member'), await make('key')];
  await revokeKey(byKey);
  for (const made of [byMember, byKey]) {
    await setRole(made, 'operator');
    await untilState(api.previewAccess, made, 'revoked');
    await setRole(made, 'member');
  }
  await untilState(api.previewAccess, byMember, undefined);
  assert.deepEqual(await requestAccess(replica.cache, byKey), { refusal: 'revoked' });
  await removeMember(byMember);
  await untilState(api.previewAccess, byMember, 'revoked');
  await insertMembership(api.db, { orgId: api.orgId, userId: byMember.member.userId, role: 'member' });
  await untilState(api.previewAccess, byMember, undefined);
});

test('another member replaces an inactive link from its listed fields and revokes it', async () => {
  const made = await make('key');
  await revokeKey(made);
  const path = `/v1/sandboxes/${made.sandboxId}/previews`;
  const { token } = await api.makeSession({ role: 'member' });
  const [inactive] = (await api.call('GET', path, { token })).body.previews;
  const { port, label, endUserId } = inactive;
  assert.deepEqual([inactive.inactiveReason, port, label, endUserId], ['api_key_revoked', 3_000, 'shop', 'u-1']);
  const replaced = await api.call('POST', path, { token, body: { port, label, endUserId, audience: 'public' } });
  await ok(api.call('DELETE', `${path}/${made.id}`, { token }));
  const { id, url } = replaced.body.preview;
  assert.deepEqual(
    (await listed(made)).map((link) => [link.id, link.url, link.inactiveReason]),
    [[id, url, null]],
  );
  assert.ok((await requestAccess(api.previewAccess, { ...made, id, token: tokenIn(api, url) })).access !== undefined);
});

test('an expired key keeps its links until their own expiry; revoking the key ends them', async () => {
  const made = await make('key');
  await api.db
    .updateTable('api_key')
    .set({ expires_at: new Date(Date.now() - 1_000) })
    .where('id', '=', made.keyId)
    .execute();
  assert.ok((await requestAccess(api.previewAccess, made)).access !== undefined);
  await revokeKey(made);
  await untilState(api.previewAccess, made, 'revoked');
});

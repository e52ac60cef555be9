// Preview links over HTTP: permissions, responses, lists and their end.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PREVIEW_LINKS } from '@berth/contract/route/limits.ts';
import type { Permission, Role } from '@berth/contract/route/permissions.ts';
import { permission } from '@berth/contract/route/permissions.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { SETTINGS } from '../../world/settings.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const pathOf = (sandboxId: string, previewId?: string): string =>
  `/v1/sandboxes/${sandboxId}/previews${previewId === undefined ? '' : `/${previewId}`}`;

/** Creates a link and records its token as a secret. */
async function mint(sandboxId: string, body: object, token = api.token): Promise<Answer> {
  const answer = await api.call('POST', pathOf(sandboxId), { body, token });
  if (answer.status === 201) api.secret(tokenOf(answer.body.preview.url), 'the token of a preview link');
  return answer;
}

const list = (sandboxId: string, token = api.token): Promise<Answer> => api.call('GET', pathOf(sandboxId), { token });
const revoke = (sandboxId: string, previewId: string, token = api.token): Promise<Answer> =>
  api.call('DELETE', pathOf(sandboxId, previewId), { token });
const tokenOf = (url: string): string => new URL(url).searchParams.get('token') ?? '';
const hostOf = (sandboxId: string, port: number): string =>
  `http://${port}-${sandboxId.slice('sbx_'.length)}.${new URL(SETTINGS.previewUrl).host}`;

async function feedOf(
  sandboxId: string,
): Promise<{ kind: string; subject: object; details: Record<string, unknown> }[]> {
  return (await api.call('GET', `/v1/orgs/${api.orgId}/activity?sandboxId=${sandboxId}`)).body.activity;
}

test('a link defaults to the team and one day; a team link has no id and no row', async () => {
  const { id } = await api.makeSandbox('ready');
  const before = Date.now();
  const { body } = await mint(id, { port: 3_000 });
  const { url, createdAt, expiresAt, ...rest } = body.preview;
  assert.deepEqual(rest, {
    id: null,
    audience: 'team',
    port: 3_000,
    label: null,
    endUserId: null,
    embeddable: false,
    lastUsedAt: null,
    revokedAt: null,
    inactiveReason: null,
  });
  assert.ok(Date.parse(createdAt) >= before && Date.parse(createdAt) <= Date.now());
  assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 86_400_000);
  assert.ok(url.startsWith(`${hostOf(id, 3_000)}/?token=bpt_team.`), url);
  assert.deepEqual((await list(id)).body, { previews: [] });
  const rows = await api.db.selectFrom('preview_link').select('id').where('sandbox_id', '=', id).execute();
  assert.deepEqual(rows, []);
});

test('a public link has its id and fields, is listed with its URL, and keeps its token', async () => {
  const { id, org_id, project_id } = await api.makeSandbox('ready');
  const { body } = await mint(id, {
    port: 8_080,
    audience: 'public',
    expiresInSeconds: 3_600,
    label: 'for Ada',
    endUserId: 'u/1',
    embeddable: true,
  });
  const { preview } = body;
  const { id: previewId, url, createdAt, expiresAt, ...rest } = preview;
  assert.match(previewId, /^prv_[a-z2-7]{24}$/);
  assert.deepEqual(rest, {
    audience: 'public',
    port: 8_080,
    label: 'for Ada',
    endUserId: 'u/1',
    embeddable: true,
    lastUsedAt: null,
    revokedAt: null,
    inactiveReason: null,
  });
  // The one has microseconds in the database.
  assert.ok(Math.abs(Date.parse(expiresAt) - Date.parse(createdAt) - 3_600_000) <= 1);
  assert.ok(url.startsWith(`${hostOf(id, 8_080)}/?token=bpt_${previewId.slice('prv_'.length)}.`), url);
  assert.deepEqual((await list(id)).body, { previews: [preview] });
  const row = await api.db.selectFrom('preview_link').selectAll().where('id', '=', previewId).executeTakeFirstOrThrow();
  assert.deepEqual(
    [row.org_id, row.project_id, row.created_by],
    [org_id, project_id, api.userId],
    'what it copies, for when the sandbox is gone',
  );
});

test('the list has outstanding links, newest first', async () => {
  const { id } = await api.makeSandbox('ready');
  const made: string[] = [];
  for (const port of [1, 2, 3, 4]) made.push((await mint(id, { port, audience: 'public' })).body.preview.id);
  const [oldest, revoked, expired, newest] = made as [string, string, string, string];
  await revoke(id, revoked);
  await api.db
    .updateTable('preview_link')
    .set({ expires_at: sql<Date>`date_trunc('milliseconds', now())` })
    .where('id', '=', expired)
    .execute();
  const listed = (await list(id)).body.previews;
  assert.deepEqual(
    listed.map((preview: { id: string }) => preview.id),
    [newest, oldest],
  );
});

test('revoking returns the instant without the URL; a second revocation changes nothing', async () => {
  const { id } = await api.makeSandbox('ready');
  const { preview } = (await mint(id, { port: 80, audience: 'public', label: 'x' })).body;
  const answers = await Promise.all(Array.from({ length: 5 }, () => revoke(id, preview.id)));
  answers.push(await revoke(id, preview.id));
  const [{ revokedAt }] = answers.map(({ body }) => body.preview) as [{ revokedAt: string }];
  assert.ok(Date.parse(revokedAt) > 0);
  for (const { status, body } of answers) {
    assert.equal(status, 200);
    assert.deepEqual(body.preview, { ...preview, url: null, revokedAt });
  }
  assert.deepEqual(
    (await feedOf(id)).map(({ kind }) => kind),
    ['preview_link_revoked', 'preview_link_created'],
  );
});

test('the feed names links made and revoked, with audience and lifetime, never their tokens', async () => {
  const { id } = await api.makeSandbox('ready');
  const team = (await mint(id, { port: 1, label: 'a', endUserId: 'u' })).body.preview;
  const open = (await mint(id, { port: 2, audience: 'public' })).body.preview;
  await revoke(id, open.id);
  const feed = await feedOf(id);
  const told = { label: null, endUserId: null };
  assert.deepEqual(
    feed.map(({ kind, subject, details }) => [kind, subject, details]),
    [
      ['preview_link_revoked', { kind: 'preview_link', id: open.id }, { port: 2, ...told }],
      [
        'preview_link_created',
        { kind: 'preview_link', id: open.id },
        { audience: 'public', port: 2, expiresAt: open.expiresAt, ...told, embeddable: false },
      ],
      [
        'preview_link_created',
        { kind: 'sandbox', id },
        { audience: 'team', port: 1, expiresAt: team.expiresAt, label: 'a', endUserId: 'u', embeddable: false },
      ],
    ],
  );
  assert.ok(!JSON.stringify(feed).includes('bpt_'));
});

for (const [what, body, message] of [
  ['without a port', {}, /body\.port/],
  ['to port 0', { port: 0 }, /body\.port/],
  ['to port 65536', { port: 65_536 }, /body\.port/],
  ['to half a port', { port: 80.5 }, /body\.port/],
  ['to a port as text', { port: '80' }, /body\.port/],
  ['for 0 seconds', { port: 80, expiresInSeconds: 0 }, /body\.expiresInSeconds/],
  ['for more than 30 days', { port: 80, expiresInSeconds: 2_592_001 }, /body\.expiresInSeconds/],
  ['for part of a second', { port: 80, expiresInSeconds: 1.5 }, /body\.expiresInSeconds/],
  ['for everybody', { port: 80, audience: 'everybody' }, /body\.audience/],
  ['with an empty label', { port: 80, label: '' }, /body\.label/],
  ['with a label of 101 characters', { port: 80, label: 'x'.repeat(101) }, /body\.label/],
  ['with a NUL in its label', { port: 80, label: 'a\0' }, /body\.label/],
  ['with an endUserId of 513 characters', { port: 80, endUserId: 'x'.repeat(513) }, /body\.endUserId/],
] as const) {
  test(`a link ${what} is 400 and names the field`, async () => {
    const { id } = await api.makeSandbox('ready');
    for (const audience of ['team', 'public']) {
      const { status, body: answered } = await mint(id, { audience, ...body });
      assert.deepEqual([status, answered.error.code], [400, 'invalid_request']);
      assert.match(answered.error.message, message);
    }
    assert.deepEqual(await feedOf(id), []);
  });
}

test("a link's lifetime is 1 second to 30 days", async () => {
  const { id } = await api.makeSandbox('ready');
  for (const audience of ['team', 'public']) {
    for (const expiresInSeconds of [1, 2_592_000]) {
      const { preview } = (await mint(id, { port: 80, audience, expiresInSeconds })).body;
      assert.ok(
        Math.abs(Date.parse(preview.expiresAt) - Date.parse(preview.createdAt) - expiresInSeconds * 1_000) <= 1,
      );
    }
  }
});

test("the port of the service's own daemon is 403 port_forbidden", async () => {
  const { id } = await api.makeSandbox('ready');
  for (const audience of ['team', 'public']) {
    const { status, body } = await mint(id, { port: GUEST_PORT, audience });
    assert.deepEqual([status, body.error.code], [403, 'port_forbidden']);
  }
});

for (const status of ['provisioning', 'sleeping', 'stopped', 'waking', 'failed'] satisfies SandboxStatus[]) {
  test(`a sandbox that is ${status} gets links of both kinds`, async () => {
    const { id } = await api.makeSandbox(status);
    for (const audience of ['team', 'public']) assert.equal((await mint(id, { port: 80, audience })).status, 201);
    assert.equal((await list(id)).body.previews.length, 1);
  });
}

for (const status of ['destroying', 'deleted'] satisfies SandboxStatus[]) {
  test(`a sandbox that is ${status} gets no links and lists none; old links can be revoked`, async () => {
    const { id } = await api.makeSandbox('ready');
    const { preview } = (await mint(id, { port: 80, audience: 'public' })).body;
    const deletedAt = status === 'deleted' ? new Date() : null;
    await api.db.updateTable('sandbox').set({ status, deleted_at: deletedAt }).where('id', '=', id).execute();
    for (const audience of ['team', 'public']) {
      const { status: refused, body } = await mint(id, { port: 80, audience });
      assert.deepEqual([refused, body.error.code], [409, 'sandbox_state_conflict']);
    }
    assert.deepEqual((await list(id)).body, { previews: [] });
    assert.notEqual((await revoke(id, preview.id)).body.preview.revokedAt, null);
  });
}

test('a sandbox has at most 1,000 public links, even under concurrency; an ended one frees a place', async () => {
  const { id, org_id, project_id } = await api.makeSandbox('ready');
  await sql`insert into preview_link (id, sandbox_id, org_id, project_id, port, expires_at)
    select 'prv_' || n, ${id}, ${org_id}, ${project_id}, 80, date_trunc('milliseconds', now() + interval '1 hour')
    from generate_series(1, ${PREVIEW_LINKS.outstanding - 3}) n`.execute(api.db);
  const answers = await Promise.all(Array.from({ length: 10 }, () => mint(id, { port: 80, audience: 'public' })));
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 3);
  for (const { status, body } of answers.filter((answer) => answer.status !== 201)) {
    assert.deepEqual([status, body.error.code], [409, 'preview_link_limit']);
    assert.match(body.error.message, /\b1000\b/);
  }
  assert.equal((await mint(id, { port: 80 })).status, 201, 'a team link is not stored');
  await revoke(id, made[0]?.body.preview.id);
  assert.equal((await mint(id, { port: 80, audience: 'public' })).status, 201);
  await sql`update preview_link set expires_at = date_trunc('milliseconds', now()) where id = 'prv_1'`.execute(api.db);
  assert.equal((await mint(id, { port: 80, audience: 'public' })).status, 201);
  assert.equal((await mint(id, { port: 80, audience: 'public' })).status, 409);
});

for (const [role, mayShare] of [
  ['owner', true],
  ['admin', true],
  ['member', true],
  ['operator', false],
  ['viewer', false],
] satisfies [Role, boolean][]) {
  test(`${role}: makes team links${mayShare ? ', and manages public ones' : ' only'}`, async () => {
    const { id } = await api.makeSandbox('ready');
    const { preview } = (await mint(id, { port: 80, audience: 'public' })).body;
    for (const token of [(await api.makeSession({ role })).token, await api.makeKey({ role })]) {
      assert.equal((await mint(id, { port: 80 }, token)).status, 201);
      const shared = await mint(id, { port: 80, audience: 'public' }, token);
      const listed = (await list(id, token)).body.previews.find((one: { id: string }) => one.id === preview.id);
      assert.deepEqual(listed, { ...preview, url: mayShare ? preview.url : null });
      const revoked = await revoke(id, shared.body.preview?.id ?? preview.id, token);
      if (mayShare) {
        assert.deepEqual([shared.status, revoked.status], [201, 200]);
        continue;
      }
      for (const { status, body } of [shared, revoked]) {
        assert.deepEqual([status, body.error.code], [403, 'permission_denied']);
        assert.match(body.error.message, /the permission sandbox\.preview\.share is required/);
      }
    }
  });
}

test('sandbox.preview makes team links and lists; public links need sandbox.preview.share too', async () => {
  const { id } = await api.makeSandbox('ready');
  const { preview } = (await mint(id, { port: 80, audience: 'public' })).body;
  const asked = async (scopes: Permission[]): Promise<number[]> => {
    const token = await api.makeKey({ scopes });
    const calls = [mint(id, { port: 80 }, token), mint(id, { port: 80, audience: 'public' }, token), list(id, token)];
    return (await Promise.all(calls)).map(({ status }) => status);
  };
  assert.deepEqual(await asked(['sandbox.preview']), [201, 403, 200]);
  assert.deepEqual(await asked(['sandbox.preview', 'sandbox.preview.share']), [201, 201, 200]);
  assert.deepEqual(await asked(['sandbox.preview.share']), [403, 403, 403]);
  assert.deepEqual(
    await asked(permission.options.filter((name) => !name.startsWith('sandbox.preview'))),
    [403, 403, 403],
  );
  assert.equal((await revoke(id, preview.id, await api.makeKey({ scopes: ['sandbox.preview'] }))).status, 403);
  assert.equal((await revoke(id, preview.id, await api.makeKey({ scopes: ['sandbox.preview.share'] }))).status, 200);
});

test('links of another sandbox or org and missing links get the same response', async () => {
  const { id } = await api.makeSandbox('ready');
  const other = await api.makeSandbox('ready');
  const org = await api.makeOrg();
  const foreign = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  const others = [
    (await mint(other.id, { port: 80, audience: 'public' })).body.preview.id,
    (await mint(foreign.id, { port: 80, audience: 'public' }, org.token)).body.preview.id,
    newId('previewLink'),
    'prv_',
    'x',
  ];
  const answers = await Promise.all(others.map((previewId) => revoke(id, previewId)));
  for (const { status, body } of answers) {
    assert.deepEqual([status, body], [404, answers[0]?.body]);
    assert.equal(body.error.code, 'preview_link_not_found');
  }
  assert.equal((await list(other.id)).body.previews.length, 1);
  assert.equal((await revoke(foreign.id, others[1])).body.error.code, 'org_access_denied');
});

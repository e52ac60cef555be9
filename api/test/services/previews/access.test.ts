// Access to previews by public and team links: host, lifetime, cookies.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { openPreview, signInUrl } from '../../../src/services/previews/access.ts';
import { grantToken, publicToken, teamToken } from '../../../src/services/previews/token.ts';
import { PreviewAccessCache } from '../../../src/services/previews/access-cache.ts';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { deleteLogin } from '../../../src/store/access/session-tokens.ts';
import { signInAs, startApi, type TestApi } from '../../world/api.ts';
import { StatementRecorder } from '../../world/statements.ts';
import { SETTINGS } from '../../world/settings.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { cookieOf, grantedLink, mintLink, startReplica, requestAccess } from './links.ts';

const recorder = new StatementRecorder();
let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const ready = async (): Promise<string> => (await api.makeSandbox('ready')).id;
const member = (): ReturnType<TestApi['makeSession']> => api.makeSession({ role: 'viewer' });

/** Decisions are cached for a second: polls until it changes. */
async function untilRefused(what: string, ask: () => ReturnType<typeof requestAccess>): Promise<unknown> {
  let refusal: unknown;
  await untilTrue(what, async () => {
    ({ refusal } = await ask());
    return refusal !== undefined;
  });
  return refusal;
}

test('a public link gives access without an account and sets a cookie that continues it', async () => {
  const link = await mintLink(api, await ready(), { audience: 'public' });
  const opened = await requestAccess(api.previewAccess, link);
  assert.deepEqual(opened.access?.link, { kind: 'public', linkId: link.id });
  const { access } = opened;
  assert.deepEqual(
    [access?.orgId, access?.projectId, access?.port, access?.sandbox.id],
    [api.orgId, api.projectId, 3_000, link.sandboxId],
  );
  assert.equal(access?.expiresAt.toISOString(), link.expiresAt);
  assert.match(
    access?.setCookie ?? '',
    /^berth_preview=bpc_public\.[\w.-]+; Path=\/; Max-Age=863\d\d; HttpOnly; SameSite=Lax$/,
  );
  const again = await requestAccess(api.previewAccess, link, { token: null, cookie: cookieOf(api, opened) });
  assert.deepEqual({ ...again.access, setCookie: access?.setCookie }, { ...access, setCookie: access?.setCookie });
  assert.equal(again.access?.setCookie, null);
});

test('over https the cookie is bound to its host and works in framed previews', async () => {
  const link = await mintLink(api, await ready(), { audience: 'public' });
  const settings = { ...api.context.settings, previewUrl: 'https://previews.example.test' };
  const { access } = await requestAccess(new PreviewAccessCache({ ...api.context, settings }), link);
  assert.match(
    access?.setCookie ?? '',
    /^__Host-berth_preview=bpc_[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=None; Partitioned$/,
  );
});

test('without a credential the response is the same, whatever the preview host refers to', async () => {
  const { id: deleted } = await api.makeSandbox('deleted');
  const { statements } = await recorder.during(async () => {
    for (const sandboxId of [await ready(), deleted, newId('sandbox')]) {
      assert.deepEqual(await openPreview(api.previewAccess, { sandboxId, port: 80, token: null, cookie: null }), {
        refusal: 'no_link',
      });
      for (const cookie of ['', 'x', 'bpc_public.x', 'x'.repeat(5_000)]) {
        assert.deepEqual(await openPreview(api.previewAccess, { sandboxId, port: 80, token: null, cookie }), {
          refusal: 'no_link',
        });
      }

      for (const token of ['bpt_', 'bpt_x.y', `bpt_${'a'.repeat(24)}.${'A'.repeat(43)}`, `bpt_${'x'.repeat(5_000)}`]) {
        assert.deepEqual(await openPreview(api.previewAccess, { sandboxId, port: 80, token, cookie: null }), {
          refusal: 'invalid_link',
        });
      }
    }
  });
  assert.ok(
    !statements.some((statement) => statement.includes('preview_link') || statement.startsWith('select')),
    'what is forged costs no query',
  );
});

test('a token or cookie of another port, sandbox or org and a bare link id are refused', async () => {
  const sandboxId = await ready();
  const org = await api.makeOrg();
  const { id: foreign } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  const person = await member();
  const open = await mintLink(api, sandboxId, { audience: 'public' });
  const team = await mintLink(api, sandboxId);
  const grant = await grantedLink(api, team, person);
  const cookies = [
    cookieOf(api, await requestAccess(api.previewAccess, open)),
    cookieOf(api, await requestAccess(api.previewAccess, grant)),
  ];
  for (const elsewhere of [{ port: 3_001 }, { sandboxId: await ready() }, { sandboxId: foreign }]) {
    for (const link of [open, team, grant])
      assert.deepEqual(await requestAccess(api.previewAccess, link, elsewhere), { refusal: 'invalid_link' });
    for (const cookie of cookies) {
      assert.deepEqual(await requestAccess(api.previewAccess, open, { ...elsewhere, token: null, cookie }), {
        refusal: 'no_link',
      });
    }
  }
  const bare = { ...open, token: `bpt_${open.id?.slice('prv_'.length)}` };
  assert.deepEqual(await requestAccess(api.previewAccess, bare), { refusal: 'invalid_link' });
  assert.deepEqual(
    await requestAccess(api.previewAccess, { ...open, token: `${bare.token}.${open.token.split('.')[1]}x` }),
    {
      refusal: 'invalid_link',
    },
  );
});

test('changing the secret key invalidates every link', async () => {
  const open = await mintLink(api, await ready(), { audience: 'public' });
  const cache = new PreviewAccessCache({ ...api.context, secretKey: new SecretKey(Buffer.alloc(32, 7)) });
  assert.deepEqual(await requestAccess(cache, open), { refusal: 'invalid_link' });
});

test('links and cookies outlive a rotation, and end when their key is removed', async () => {
  const [old, fresh] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const secretKey = new SecretKey(old);
  const cache = new PreviewAccessCache({ ...api.context, secretKey });
  const minted = await mintLink(api, await ready(), { audience: 'public' });
  const place = { sandboxId: minted.sandboxId, port: minted.port };
  const link = { ...minted, token: publicToken(cache.keys, minted.id ?? '', place) };
  const cookie = cookieOf(api, await requestAccess(cache, link));
  secretKey.replaceWith(new SecretKey(fresh, old));
  assert.equal((await requestAccess(cache, link)).refusal, undefined);
  assert.equal((await requestAccess(cache, link, { token: null, cookie })).refusal, undefined);
  secretKey.replaceWith(new SecretKey(fresh));
  assert.deepEqual(await requestAccess(cache, link), { refusal: 'invalid_link' });
  assert.deepEqual(await requestAccess(cache, link, { token: null, cookie }), { refusal: 'no_link' });
});

test("an expired link's token is reported as expired; its cookie is invalid", async () => {
  const sandboxId = await ready();
  const [open, team] = [
    await mintLink(api, sandboxId, { audience: 'public', expiresInSeconds: 4 }),
    await mintLink(api, sandboxId, { expiresInSeconds: 4 }),
  ];
  const opened = await requestAccess(api.previewAccess, open);
  const cookie = cookieOf(api, opened);
  assert.equal(await untilRefused('the public link expires', () => requestAccess(api.previewAccess, open)), 'expired');
  let last: unknown;
  await untilTrue('the team link expires', async () => {
    last = (await requestAccess(api.previewAccess, team)).refusal;
    return last === 'expired';
  });
  assert.equal(
    await untilRefused('its cookie is none', () => requestAccess(api.previewAccess, open, { token: null, cookie })),
    'no_link',
  );
});

test('a link expires by the database clock, whatever the local clock', async () => {
  const open = await mintLink(api, await ready(), { audience: 'public' });
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, open));
  await api.db
    .updateTable('preview_link')
    .set({ expires_at: sql<Date>`date_trunc('milliseconds', now())` })
    .where('id', '=', open.id ?? '')
    .execute();
  assert.equal(await untilRefused('the link', () => requestAccess(api.previewAccess, open)), 'expired');
  assert.equal(
    await untilRefused('its cookie', () => requestAccess(api.previewAccess, open, { token: null, cookie })),
    'expired',
  );
});

test('a link without its row counts as expired; no other token does', async () => {
  const open = await mintLink(api, await ready(), { audience: 'public' });
  await api.db
    .deleteFrom('preview_link')
    .where('id', '=', open.id ?? '')
    .execute();
  assert.deepEqual(await requestAccess(api.previewAccess, open), { refusal: 'expired' });
  assert.deepEqual(await requestAccess(api.previewAccess, { ...open, token: `${open.token}x` }), {
    refusal: 'invalid_link',
  });
});

test("a revoked link's token and cookies are refused on every replica", async () => {
  const [one, other] = [await startReplica(api), await startReplica(api)];
  try {
    const open = await mintLink(api, await ready(), { audience: 'public' });
    const cookies = [
      cookieOf(api, await requestAccess(one.cache, open)),
      cookieOf(api, await requestAccess(other.cache, open)),
    ];
    assert.equal((await api.call('DELETE', `/v1/sandboxes/${open.sandboxId}/previews/${open.id}`)).status, 200);
    for (const { cache } of [one, other]) {
      assert.equal(await untilRefused('the token', () => requestAccess(cache, open)), 'revoked');
      for (const cookie of cookies) {
        assert.equal(
          await untilRefused('the cookie', () => requestAccess(cache, open, { token: null, cookie })),
          'revoked',
        );
      }
    }
  } finally {
    await one.close();
    await other.close();
  }
});

test('destroying a sandbox kills its links and leaves the rows unchanged', async () => {
  const sandboxId = await ready();
  const person = await member();
  const open = await mintLink(api, sandboxId, { audience: 'public' });
  const grant = await grantedLink(api, await mintLink(api, sandboxId), person);
  await requestAccess(api.previewAccess, open);
  // A grant works once; later requests of the same visitor carry its cookie.
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, grant));
  const requests = [{ link: open }, { link: grant, given: { token: null, cookie } }];
  for (const { link, given } of requests) {
    assert.ok(
      (await requestAccess(api.previewAccess, link, given)).access,
      'the link grants access before the destroy',
    );
  }
  assert.equal(
    (await api.call('POST', `/v1/sandboxes/${sandboxId}/destroy`, { headers: { prefer: 'respond-async' } })).status,
    200,
  );
  for (const { link, given } of requests)
    assert.equal(await untilRefused('the link', () => requestAccess(api.previewAccess, link, given)), 'sandbox_gone');
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('id', '=', sandboxId)
    .execute();
  const { cache, close } = await startReplica(api);
  for (const { link, given } of requests)
    assert.deepEqual(await requestAccess(cache, link, given), { refusal: 'sandbox_gone' });
  await close();
});

test('access to an asleep or transitional sandbox is granted; the caller handles the status', async () => {
  for (const status of ['provisioning', 'sleeping', 'stopped', 'waking', 'failed'] as const) {
    const { id } = await api.makeSandbox(status);
    const { access } = await requestAccess(api.previewAccess, await mintLink(api, id, { audience: 'public' }));
    assert.equal(access?.sandbox.status, status);
  }
});

test('a team link alone redirects to sign-in with a return path', async () => {
  const link = await mintLink(api, await ready());
  const { refusal } = await requestAccess(api.previewAccess, link);
  assert.ok(typeof refusal === 'object');
  const url = new URL(signInUrl(refusal, '/a?b=c'));
  assert.equal(url.origin, SETTINGS.publicUrl);
  assert.equal(url.pathname, '/preview');
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    link: link.token,
    sandbox: link.sandboxId,
    port: '3000',
    path: '/a?b=c',
  });
});

test('a grant sets a cookie that gives access until the link expires', async () => {
  const person = await member();
  const link = await mintLink(api, await ready());
  const opened = await requestAccess(api.previewAccess, await grantedLink(api, link, person));
  assert.deepEqual(opened.access?.link, { kind: 'team', loginId: person.loginId, userId: person.userId });
  assert.equal(opened.access?.expiresAt.toISOString(), link.expiresAt);
  const cookie = cookieOf(api, opened);
  for (const token of [null, link.token]) {
    const { access } = await requestAccess(api.previewAccess, link, { token, cookie });
    assert.deepEqual([access?.link, access?.setCookie], [opened.access?.link, null]);
  }
});

test('a grant works once: a copy opens nothing, and its visitor gets another grant', async () => {
  const person = await member();
  const link = await mintLink(api, await ready());
  const grant = await grantedLink(api, link, person);
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, grant));
  const { refusal } = await requestAccess(api.previewAccess, grant);
  assert.ok(typeof refusal === 'object');
  assert.equal(new URL(refusal.signIn).searchParams.get('link'), link.token);
  const reloaded = await requestAccess(api.previewAccess, grant, { cookie });
  assert.deepEqual([reloaded.access?.link.kind, reloaded.access?.setCookie], ['team', null]);
  cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, link, person)));
});

test('concurrent visits with one grant get one cookie, on any replica', async () => {
  const grant = await grantedLink(api, await mintLink(api, await ready()), await member());
  const { cache, close } = await startReplica(api);
  try {
    const visits = await Promise.all(
      Array.from({ length: 20 }, (_, index) => requestAccess(index % 2 === 0 ? api.previewAccess : cache, grant)),
    );
    const cookies = visits.filter(({ access }) => access !== undefined).map((visit) => cookieOf(api, visit));
    assert.equal(cookies.length, 1);
  } finally {
    await close();
  }
});

test('a grant to a preview that refuses is not spent', async () => {
  const link = await mintLink(api, await ready());
  const person = await member();
  const grant = await grantedLink(api, link, person);
  await api.db
    .updateTable('membership')
    .set({ role: sql`'x'` })
    .where('user_id', '=', person.userId)
    .execute();
  assert.equal(typeof (await requestAccess(api.previewAccess, grant)).refusal, 'object');
  await api.db.updateTable('membership').set({ role: 'viewer' }).where('user_id', '=', person.userId).execute();
  const { cache, close } = await startReplica(api);
  cookieOf(api, await requestAccess(cache, grant));
  await close();
});

test('grants are stored as hashes, for ten minutes', async () => {
  const visit = async (): Promise<void> => {
    const grant = await grantedLink(api, await mintLink(api, await ready()), await member());
    cookieOf(api, await requestAccess(api.previewAccess, grant));
  };
  await visit();
  await sql`update spent_grant set spent_at = now() - interval '9 minutes'`.execute(api.db);
  await visit();
  const { length: kept } = await api.db.selectFrom('spent_grant').select('spent_at').execute();
  assert.ok(kept >= 2);
  await sql`update spent_grant set spent_at = now() - interval '601 seconds'`.execute(api.db);
  await visit();
  const rows = await api.db.selectFrom('spent_grant').selectAll().execute();
  assert.deepEqual(
    rows.map(({ token_sha256: sha256 }) => sha256.byteLength),
    [32],
  );
});

test('a grant lasts a minute; later loads use the cookie, or sign in again', async () => {
  const person = await member();
  const link = await mintLink(api, await ready());
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, link, person)));
  const expiresAtMs = Date.parse(link.expiresAt);
  const key = api.context.secretKey.keysFor('preview-link');
  const place = { sandboxId: link.sandboxId, port: link.port };
  const { loginId, userId } = person;
  const late = grantToken(
    key,
    { loginId, userId, expiresAtMs, embeddable: false, grantedUntilMs: Date.now() - 1 },
    place,
  );
  assert.deepEqual((await requestAccess(api.previewAccess, link, { token: late, cookie })).access?.link, {
    kind: 'team',
    loginId,
    userId,
  });
  const { refusal } = await requestAccess(api.previewAccess, link, { token: late });
  assert.equal(
    new URL((refusal as { signIn: string }).signIn).searchParams.get('link'),
    link.token,
    'by the link that the grant was for',
  );
  // A link with a longer lifetime gives a longer cookie.
  const longer = teamToken(key, { expiresAtMs: expiresAtMs + 60_000, embeddable: false }, place);
  assert.equal(typeof (await requestAccess(api.previewAccess, link, { token: longer, cookie })).refusal, 'object');
});

test('a team cookie lasts as long as login, membership and account', async () => {
  for (const [what, end] of [
    ['signed out', ({ loginId }) => deleteLogin(api.db, loginId)],
    [
      'the login expired',
      async ({ loginId }) =>
        void (await api.db.updateTable('session').set({ expiresAt: new Date() }).where('id', '=', loginId).execute()),
    ],
    [
      'no member any more',
      async ({ userId }) => void (await api.db.deleteFrom('membership').where('user_id', '=', userId).execute()),
    ],
    [
      'a role that this version does not know',
      async ({ userId }) =>
        void (await api.db
          .updateTable('membership')
          .set({ role: sql`'x'` })
          .where('user_id', '=', userId)
          .execute()),
    ],
  ] as [string, (person: { loginId: string; userId: string }) => Promise<void>][]) {
    const person = await member();
    const link = await mintLink(api, await ready());
    const cookie = cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, link, person)));
    assert.ok((await requestAccess(api.previewAccess, link, { token: null, cookie })).access !== undefined);
    await end(person);
    const refusal = await untilRefused(what, () => requestAccess(api.previewAccess, link, { token: null, cookie }));
    assert.equal(new URL((refusal as { signIn: string }).signIn).searchParams.get('link'), link.token, what);
  }
});

test('a cookie works only for its own login, not another one of the same or another person', async () => {
  const person = await member();
  const link = await mintLink(api, await ready());
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, link, person)));
  const stays = await signInAs(api.db, person.userId);
  await deleteLogin(api.db, person.loginId);
  assert.equal(
    typeof (await untilRefused('the cookie', () => requestAccess(api.previewAccess, link, { token: null, cookie }))),
    'object',
  );
  assert.ok(
    (await requestAccess(api.previewAccess, await grantedLink(api, link, { ...person, loginId: stays.loginId })))
      .access !== undefined,
  );
  // A valid login and a valid person that do not belong together.
  const [one, other] = [await member(), await member()];
  const key = api.context.secretKey.keysFor('preview-link');
  const mixed = {
    loginId: one.loginId,
    userId: other.userId,
    expiresAtMs: Date.parse(link.expiresAt),
    embeddable: false,
    grantedUntilMs: Date.now() + 60_000,
  };
  const token = grantToken(key, mixed, { sandboxId: link.sandboxId, port: link.port });
  assert.equal(typeof (await requestAccess(api.previewAccess, link, { token })).refusal, 'object');
});

test('concurrent visits share one query, and a database failure is not cached', async () => {
  const link = await mintLink(api, await ready(), { audience: 'public' });
  const team = await mintLink(api, link.sandboxId);
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, team, await member())));
  const { cache, close } = await startReplica(api);
  for (const brought of [{}, { token: null, cookie }]) {
    const { result, statements } = await recorder.during(() =>
      Promise.all(Array.from({ length: 50 }, () => requestAccess(cache, link, brought))),
    );
    assert.ok(result.every(({ access }) => access !== undefined));
    assert.equal(statements.filter((statement) => statement.startsWith('select')).length, 1, statements.join('\n'));
  }
  await close();
  const broken = await mintLink(api, link.sandboxId, { audience: 'public' });
  await sql`alter table preview_link rename to away`.execute(api.db);
  await assert.rejects(requestAccess(api.previewAccess, broken));
  await sql`alter table away rename to preview_link`.execute(api.db);
  assert.ok((await requestAccess(api.previewAccess, broken)).access !== undefined);
});

test("a link's last use is recorded at most once a minute across replicas, and listed", async () => {
  const link = await mintLink(api, await ready(), { audience: 'public' });
  const lastUsed = async (): Promise<string | null> =>
    (await api.call('GET', `/v1/sandboxes/${link.sandboxId}/previews`)).body.previews[0].lastUsedAt;
  assert.equal(await lastUsed(), null);
  await requestAccess(api.previewAccess, link);
  await untilTrue('the use is noted', async () => (await lastUsed()) !== null);
  const first = await lastUsed();
  const { cache, close } = await startReplica(api);
  const { statements } = await recorder.during(() => requestAccess(cache, link));
  assert.ok(!statements.some((statement) => statement.startsWith('update')));
  assert.equal(await lastUsed(), first);
  await api.db
    .updateTable('preview_link')
    .set({ last_used_at: sql<Date>`now() - interval '61 seconds'` })
    .where('id', '=', link.id ?? '')
    .execute();
  const old = await lastUsed();
  await untilTrue('the later use is noted', async () => {
    await requestAccess(cache, link);
    return (await lastUsed()) !== old;
  });
  await close();
});

test('no token or cookie is in the database or the log', async () => {
  await api.scanSecrets();
});

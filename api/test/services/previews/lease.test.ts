// Leases of open preview connections, and what ends them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PREVIEW_REVOKED_WITHIN_MS } from '@berth/contract/route/limits.ts';
import type { ServiceContext } from '../../../src/services/context/context.ts';
import { PreviewAccessCache } from '../../../src/services/previews/access-cache.ts';
import { leasePreview, type PreviewAccess, type PreviewEnd } from '../../../src/services/previews/access.ts';
import { deleteLogin } from '../../../src/store/access/session-tokens.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { StatementRecorder } from '../../world/statements.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { grantedLink, mintLink, startReplica, requestAccess, type MintedLink } from './links.ts';

const recorder = new StatementRecorder();
let api: TestApi;
let replica: { cache: PreviewAccessCache; close(this: void): Promise<void> };
before(async () => {
  api = await startApi({ durable: false });
  replica = await startReplica(api);
});
after(async () => {
  await replica.close();
  await api.close();
});

async function opened(cache: PreviewAccessCache, link: MintedLink): Promise<PreviewAccess> {
  const { access, refusal } = await requestAccess(cache, link);
  assert.ok(access !== undefined, JSON.stringify(refusal));
  return access;
}

async function publicLink(expiresInSeconds = 3_600): Promise<MintedLink> {
  return await mintLink(api, (await api.makeSandbox('ready')).id, { audience: 'public', expiresInSeconds });
}

async function teamLink(person: TestSession, expiresInSeconds = 3_600): Promise<MintedLink> {
  return await grantedLink(api, await mintLink(api, (await api.makeSandbox('ready')).id, { expiresInSeconds }), person);
}

/** Cache that counts its watched sandboxes. */
function counting(context: ServiceContext): { cache: PreviewAccessCache; watched(this: void): number } {
  let open = 0;
  const watch = (sandboxId: string): ReturnType<ServiceContext['changes']['watch']> => {
    const real = context.changes.watch(sandboxId);
    open += 1;
    return {
      next: (signal) => real.next(signal),
      close: () => {
        open -= 1;
        real.close();
      },
    };
  };
  const changes = { watch } as ServiceContext['changes'];
  return { cache: new PreviewAccessCache({ ...context, changes }), watched: () => open };
}

const isSignIn = (end: PreviewEnd): boolean =>
  typeof end === 'object' && end.signIn.includes('/preview?link=bpt_team.');
const setSandbox = async (sandboxId: string, status: 'stopped' | 'destroying'): Promise<void> => {
  await api.db
    .updateTable('sandbox')
    .set({ status, wakes_from: status === 'stopped' ? 'snapshot' : null })
    .where('id', '=', sandboxId)
    .execute();
};

for (const [what, make, end, expected] of [
  [
    'its public link is revoked',
    () => publicLink(),
    ({ id, sandboxId }) => api.call('DELETE', `/v1/sandboxes/${sandboxId}/previews/${id}`),
    'revoked',
  ],
  ['its public link expires', () => publicLink(3), () => undefined, 'expired'],
  ['its team link expires', (person) => teamLink(person, 3), () => undefined, 'expired'],
  [
    'its login is signed out',
    (person) => teamLink(person),
    (_, { loginId }) => deleteLogin(api.db, loginId),
    'sign in',
  ],
  [
    'its person is removed from the org',
    (person) => teamLink(person),
    (_, { userId }) => api.db.deleteFrom('membership').where('user_id', '=', userId).execute(),
    'sign in',
  ],
  [
    'its sandbox falls asleep',
    () => publicLink(),
    ({ sandboxId }) => setSandbox(sandboxId, 'stopped'),
    'sandbox_not_awake',
  ],
  [
    'its sandbox is destroyed',
    (person) => teamLink(person),
    ({ sandboxId }) => setSandbox(sandboxId, 'destroying'),
    'sandbox_gone',
  ],
] as [
  string,
  (person: TestSession) => Promise<MintedLink>,
  (link: MintedLink, person: TestSession) => unknown,
  string,
][]) {
  test(`an open connection ends on every replica when ${what}`, async () => {
    const person = await api.makeSession({ role: 'operator' });
    const link = await make(person);
    const access = await opened(api.previewAccess, link);
    const leases = [api.previewAccess, replica.cache].map((cache) => leasePreview(cache, access));
    await end(link, person);
    for (const why of await Promise.all(leases.map(({ over }) => over))) {
      if (expected === 'sign in') assert.ok(isSignIn(why), JSON.stringify(why));
      else assert.equal(why, expected);
    }
  });
}

test('a revocation without a notification is detected too', async () => {
  const link = await publicLink();
  const lease = leasePreview(replica.cache, await opened(replica.cache, link));
  await api.db
    .updateTable('preview_link')
    .set({ revoked_at: new Date() })
    .where('id', '=', link.id ?? '')
    .execute();
  assert.equal(await lease.over, 'revoked');
});

test('access from a cached decision is rechecked when that decision expires', async (t) => {
  const link = await publicLink();
  let nowMs = performance.now();
  t.mock.method(performance, 'now', () => nowMs);
  await opened(api.previewAccess, link);
  nowMs += PREVIEW_REVOKED_WITHIN_MS / 2 - 1;
  const access = await opened(api.previewAccess, link);
  const waits: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    waits.push(ms);
    return new AbortController().signal;
  });
  leasePreview(api.previewAccess, access).close();
  assert.equal(waits.length, 1);
  assert.ok((waits[0] ?? Infinity) + PREVIEW_REVOKED_WITHIN_MS / 2 - 1 < PREVIEW_REVOKED_WITHIN_MS, String(waits));
});

test("a visitor's connections to a preview are watched together until closed", async () => {
  const { cache, watched } = counting(api.context);
  const [link, other] = [await publicLink(), await publicLink()];
  const access = await opened(cache, link);
  const { result: leases, statements } = await recorder.during(() =>
    Promise.resolve(Array.from({ length: 500 }, () => leasePreview(cache, access))),
  );
  assert.deepEqual([watched(), statements.length], [1, 0]);
  const one = leasePreview(cache, await opened(cache, other));
  assert.equal(watched(), 2);
  for (const lease of leases) lease.close();
  await untilTrue('nobody watches what is closed', () => watched() === 1);
  const next = leasePreview(cache, access);
  assert.equal(watched(), 2);
  await api.call('DELETE', `/v1/sandboxes/${link.sandboxId}/previews/${link.id}`);
  assert.equal(await next.over, 'revoked');
  one.close();
  await untilTrue('nobody watches anything', () => watched() === 0);
});

test('a closed connection gets no notice, and one opened after the end is watched afresh', async () => {
  const link = await publicLink();
  const access = await opened(api.previewAccess, link);
  const [closed, open] = [leasePreview(api.previewAccess, access), leasePreview(api.previewAccess, access)];
  let told = false;
  void closed.over.then(() => (told = true));
  closed.close();
  await api.call('DELETE', `/v1/sandboxes/${link.sandboxId}/previews/${link.id}`);
  assert.equal(await open.over, 'revoked');
  assert.equal(await leasePreview(api.previewAccess, access).over, 'revoked');
  assert.equal(told, false);
});

test('connections stay open while the database is down, and are ended by its state afterwards', async () => {
  const link = await publicLink();
  let away = false;
  let failed = 0;
  const db = new Proxy(api.db, {
    get: (real, name) => {
      if (away && name === 'selectFrom') {
        failed += 1;
        throw new Error('the database is away');
      }
      const value: unknown = Reflect.get(real, name, real);
      return typeof value === 'function' ? value.bind(real) : value;
    },
  });
  const cache = new PreviewAccessCache({ ...api.context, db });
  const lease = leasePreview(cache, await opened(cache, link));
  let over = false;
  void lease.over.then(() => (over = true));
  away = true;
  await untilTrue('it was looked at in vain', () => failed >= 2);
  assert.equal(over, false);
  await api.call('DELETE', `/v1/sandboxes/${link.sandboxId}/previews/${link.id}`);
  away = false;
  assert.equal(await lease.over, 'revoked');
  assert.match(api.logged(), /could not recheck the access of an open preview/);
});

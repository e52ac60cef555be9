// Renewals of ephemeral sandboxes over HTTP: the new expiry, every refusal, and the race with the
// expiry.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { SANDBOX_ACTION_RULES, sandboxStatus, statusesAllowing } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import { expireSandbox } from '../../../src/services/sandboxes/ephemeral.ts';
import type { NewSandbox, SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { lockWaiters } from '../../world/lock-waiters.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

const TTL_SECONDS = 600;
const SHORT: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'short',
  name: 'Short',
  tier: 'standard',
  concurrentSandboxes: null,
  largestSize: null,
  ephemeralSessionSeconds: 3 * TTL_SECONDS,
};

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, plans: [SHORT] });
});
after(() => api.close());
beforeEach(async () => {
  await api.db.updateTable('subscription').set({ plan: 'short', status: 'active' }).execute();
});

const renew = (id: string): Promise<Answer> => api.call('POST', `/v1/sandboxes/${id}/renew`);
const makeEphemeral = (
  status: SandboxRow['status'] = 'ready',
  changed: Partial<NewSandbox> = {},
): Promise<SandboxRow> =>
  api.makeSandbox(status, { mode: 'ephemeral', ttl_seconds: TTL_SECONDS, persistence_policy: 'always_on', ...changed });
const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

test('a renewal extends the expiry by the time to live, changes nothing else and adds an event', async () => {
  const before = await makeEphemeral('running');
  const answer = await renew(before.id);
  assert.equal(answer.status, 200);
  const { sandbox } = answer.body;
  assert.equal(Date.parse(sandbox.expiresAt) - Date.parse(sandbox.createdAt), 2 * TTL_SECONDS * 1_000);
  assert.deepEqual((await api.call('GET', `/v1/sandboxes/${before.id}`)).body, answer.body);
  const after = await rowOf(before.id);
  assert.deepEqual({ ...after, expires_at: null, updated_at: null }, { ...before, expires_at: null, updated_at: null });
  const [event] = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', before.id).execute();
  assert.equal(event?.kind, 'sandbox_renewed');
  assert.deepEqual(event.details, {
    from: before.expires_at?.toISOString(),
    to: sandbox.expiresAt,
    ttlSeconds: TTL_SECONDS,
  });
});

test("a renewal that would pass the plan's session cap is 410, and the expiry stays", async () => {
  const { id } = await makeEphemeral();
  assert.deepEqual([(await renew(id)).status, (await renew(id)).status], [200, 200]);
  const before = await rowOf(id);
  const refused = await renew(id);
  assert.equal(refused.status, 410);
  assert.equal(refused.body.error.code, 'session_cap_exhausted');
  assert.match(
    refused.body.error.message,
    /^the plan Short \(short\) allows ephemeral sandboxes to live up to 1800 s; .* would live 2400 s$/,
  );
  assert.deepEqual(await rowOf(id), before);
});

test('concurrent renewals all count and together never pass the cap', async () => {
  const { id } = await makeEphemeral();
  const statuses = (await Promise.all(Array.from({ length: 8 }, () => renew(id)))).map(({ status }) => status);
  assert.deepEqual(
    [200, 410].map((wanted) => statuses.filter((status) => status === wanted).length),
    [2, 6],
  );
  const row = await rowOf(id);
  assert.equal((row.expires_at?.getTime() ?? 0) - row.created_at.getTime(), 3 * TTL_SECONDS * 1_000);
});

for (const status of sandboxStatus.options) {
  const allowed = SANDBOX_ACTION_RULES.renew[status] === 'do';
  test(`a persistent sandbox that is ${status} cannot be renewed: 400 not_ephemeral`, async () => {
    const answer = await renew((await api.makeSandbox(status)).id);
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'not_ephemeral');
  });

  if (allowed) continue;
  const isEnded = status === 'destroying' || status === 'deleted';
  test(`an ephemeral sandbox that is ${status} cannot be renewed: 409 with the remedy`, async () => {
    const before = await makeEphemeral(status);
    const answer = await renew(before.id);
    assert.equal(answer.status, 409);
    assert.equal(answer.body.error.code, 'sandbox_state_conflict');
    assert.match(answer.body.error.message, new RegExp(`the sandbox is ${status}\\b`));
    const remedies = isEnded ? ['Create another sandbox'] : statusesAllowing('renew');
    for (const remedy of remedies) assert.match(answer.body.error.message, new RegExp(`\\b${remedy}\\b`));
    assert.deepEqual(await rowOf(before.id), before);
  });
}

for (const [what, change] of [
  ['has ended', { status: 'canceled' as const }],
  ['is not in the catalogue', { plan: 'gone' }],
] as const) {
  test(`a renewal in an org whose plan ${what} is 402 no_active_plan, and the expiry stays`, async () => {
    const before = await makeEphemeral();
    await api.db.updateTable('subscription').set(change).execute();
    const answer = await renew(before.id);
    assert.equal(answer.status, 402);
    assert.equal(answer.body.error.code, 'no_active_plan');
    assert.deepEqual(await rowOf(before.id), before);
  });
}

test('an expired sandbox that is not destroyed yet cannot be renewed: 409', async () => {
  const before = await makeEphemeral('ready', { expires_at: new Date(Date.now() - 50) });
  const answer = await renew(before.id);
  assert.equal(answer.status, 409);
  assert.equal(answer.body.error.code, 'sandbox_state_conflict');
  assert.match(answer.body.error.message, /expired at .* can no longer be renewed/);
  assert.deepEqual(await rowOf(before.id), before);
});

test('a renewal before the expiry keeps the sandbox; one that waits for the expiry does not', async () => {
  const saved = await makeEphemeral('ready', { expires_at: new Date(Date.now() + 60_000) });
  assert.equal((await renew(saved.id)).status, 200);
  assert.equal(await expireSandbox(api.context, saved.id), false);
  assert.equal((await rowOf(saved.id)).status, 'ready');

  const lost = await makeEphemeral('ready', { expires_at: new Date(Date.now() - 50) });
  // The expiry holds the row lock when the renewal arrives.
  const answering = await api.db.transaction().execute(async (trx) => {
    await trx.selectFrom('sandbox').select('id').where('id', '=', lost.id).forUpdate().execute();
    const answer = renew(lost.id);
    const deadline = Date.now() + deadlineOf(10_000);
    while ((await lockWaiters(api.db)) === 0) assert.ok(Date.now() < deadline, 'the renewal does not wait for the row');

    await sql`update sandbox set status = 'destroying', epoch = epoch + 1 where id = ${lost.id}`.execute(trx);
    return [answer];
  });
  const [answer] = await Promise.all(answering);
  assert.equal(answer?.body.error.code, 'sandbox_state_conflict');
  assert.match(answer?.body.error.message, /the sandbox is destroying\b/);
});

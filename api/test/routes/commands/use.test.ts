// Commands and sleep: commands record activity and wake a stopped sandbox if its project allows it.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { Actor } from '../../../src/rules/access/access.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { lockSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import type { NewSandbox, SandboxRow } from '../../../src/store/database/schema.ts';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { awakeForUse } from '../../../src/services/sandboxes/wake-on-use.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

const LONE: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'lone',
  name: 'Lone',
  tier: 'standard',
  concurrentSandboxes: 1,
  largestSize: null,
  ephemeralSessionSeconds: null,
};
const RESULT = { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
const SYSTEM = { kind: 'system', id: null, userId: null } as const;
const LONG_AGO = new Date(Date.now() - 3_600_000);

let api: TestApi;
let wakingProjectId: string;
let ran: number;
before(async () => {
  api = await startApi({ durable: false, plans: [LONE] });
  const project = await insertProject(api.db, {
    id: newId('project'),
    org_id: api.orgId,
    name: 'wakes',
    use_case: 'internal',
    wake_on_use: true,
    created_by: api.userId,
  });
  wakingProjectId = project.id;
});
after(() => api.close());
beforeEach(() => {
  ran = 0;
  api.steps.length = 0;
  api.front.exec = () => {
    ran += 1;
    return Promise.resolve(RESULT);
  };
});

const exec = (id: string): Promise<Answer> =>
  api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'true' } });
const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const activeMsAgo = async (id: string): Promise<number> => {
  const { rows } = await sql<{ ms: number }>`
    select (extract(epoch from clock_timestamp() - last_active_at) * 1000)::float8 as ms
    from sandbox where id = ${id}`.execute(api.db);
  return rows[0]?.ms ?? Number.NaN;
};
const asleep = (changed: Partial<NewSandbox> = {}): Promise<SandboxRow> =>
  api.makeSandbox('stopped', { project_id: wakingProjectId, wakes_from: 'snapshot', ...changed });

/** Completes the sandbox's transition like its durable step. */
async function settle(id: string, to: 'ready' | 'stopped', reason?: { code: string; message: string }): Promise<void> {
  const { outcome } = await api.db.transaction().execute(async (trx) => {
    const before = await lockSandbox(trx, id);
    return await transitionSandbox(trx, {
      sandboxId: id,
      epoch: before?.epoch ?? 0,
      to,
      actor: SYSTEM,
      reason,
      wakesFrom: to === 'stopped' ? 'snapshot' : null,
    });
  });
  assert.equal(outcome, 'changed');
}

/** Resolves once the sandbox has the status. */
async function until(id: string, status: string): Promise<void> {
  const deadline = AbortSignal.timeout(deadlineOf(20_000));
  const watch = api.context.changes.watch(id);
  try {
    while ((await rowOf(id)).status !== status) {
      deadline.throwIfAborted();
      await watch.next(deadline);
    }
  } finally {
    watch.close();
  }
}

test('a command records activity before it runs', async () => {
  const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
  let noted = Number.NaN;
  api.front.exec = async () => {
    noted = await activeMsAgo(id);
    return RESULT;
  };
  assert.equal((await exec(id)).status, 200);
  assert.ok(noted < 60_000, `${noted} ms ago`);
  const shown = (await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.lastActiveAt;
  assert.equal(shown, (await rowOf(id)).last_active_at.toISOString());
});

test('many concurrent commands write activity once, as do those within the next seconds', async () => {
  const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
  await Promise.all(Array.from({ length: 20 }, () => exec(id)));
  const { last_active_at: first } = await rowOf(id);
  assert.ok(first > LONG_AGO);
  await exec(id);
  assert.deepEqual((await rowOf(id)).last_active_at, first);
  assert.equal(ran, 21);
});

test('without wakeOnUse a command during a sleep waits for it and is 409 without having run', async () => {
  const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const sleeping = api.db.transaction().execute(async (trx) => {
    await transitionSandbox(trx, { sandboxId: id, epoch: 1, to: 'sleeping', actor: SYSTEM, newEpoch: true });
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const answering = exec(id);
  // Recording activity waits for the lock that the sleep holds.
  const waits = sql<{ waits: boolean }>`
    select exists (
      select from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%last_active_at%' and datname = current_database()
    ) as waits`;
  const deadline = AbortSignal.timeout(deadlineOf(20_000));
  while ((await waits.execute(api.db)).rows[0]?.waits !== true) await delay(10, undefined, { signal: deadline });
  held.resolve();
  await sleeping;
  const answer = await answering;
  assert.deepEqual([answer.status, answer.body.error.code, ran], [409, 'sandbox_state_conflict', 0]);
  assert.match(answer.body.error.message, /the sandbox is sleeping/);
});

test('a command cut off by a sleep is 409 with the status, reporting that it may have run', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.exec = async () => {
    await api.db
      .transaction()
      .execute((trx) => transitionSandbox(trx, { sandboxId: id, epoch: 1, to: 'sleeping', actor: SYSTEM }));
    throw new ExecRefusal('guest_unreachable', 'the connection broke');
  };
  const answer = await exec(id);
  assert.equal(answer.status, 409);
  assert.match(answer.body.error.message, /the sandbox is sleeping .*may or may not have run/);
});

for (const status of sandboxStatus.options.filter((name) => !SANDBOX_STATES[name].awake)) {
  test(`without wakeOnUse a command on a sandbox that is ${status} fails and changes nothing`, async () => {
    const before = await api.makeSandbox(status);
    const answer = await exec(before.id);
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_state_conflict']);
    assert.deepEqual([await rowOf(before.id), api.steps, ran], [before, [], 0]);
  });
}

for (const status of ['provisioning', 'failed', 'destroying', 'deleted'] as const) {
  test(`with wakeOnUse a command on a sandbox that is ${status} fails and wakes nothing`, async () => {
    const before = await api.makeSandbox(status, {
      project_id: wakingProjectId,
      ...(status === 'failed' ? { wakes_from: 'disk' } : {}),
    });
    assert.equal((await exec(before.id)).status, 409);
    assert.deepEqual([await rowOf(before.id), api.steps, ran], [before, [], 0]);
  });
}

test('with wakeOnUse a command wakes a stopped sandbox, then runs; the feed has the reason', async () => {
  const { id } = await asleep();
  const answering = exec(id);
  await until(id, 'waking');
  assert.deepEqual([ran, api.steps], [0, [{ kind: 'wake', step: { sandboxId: id, epoch: 2 } }]]);
  await settle(id, 'ready');
  assert.equal((await answering).status, 200);
  assert.equal(ran, 1);
  const events = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).orderBy('at').execute();
  assert.deepEqual(
    events.map(({ kind, actor_kind }) => [kind, actor_kind]),
    [
      ['sandbox_wake_requested', 'api_key'],
      ['sandbox_woken', 'system'],
      ['sandbox_exec', 'api_key'],
    ],
  );
  assert.equal(events[0]?.details['wakeOnUse'], 'exec');
});

test('concurrent commands wake a sandbox once', async () => {
  const { id } = await asleep();
  const answering = Promise.all(Array.from({ length: 10 }, () => exec(id)));
  await until(id, 'waking');
  await settle(id, 'ready');
  for (const { status } of await answering) assert.equal(status, 200);
  assert.equal(ran, 10);
  assert.equal(api.steps.length, 1);
});

test('with wakeOnUse a command during a sleep waits for it and wakes the sandbox', async () => {
  const { id } = await api.makeSandbox('sleeping', { project_id: wakingProjectId });
  const answering = exec(id);
  await settle(id, 'stopped');
  await until(id, 'waking');
  await settle(id, 'ready');
  assert.equal((await answering).status, 200);
});

test("a command during another caller's wake runs once the sandbox is awake", async () => {
  const { id } = await api.makeSandbox('waking', { project_id: wakingProjectId });
  const answering = exec(id);
  await settle(id, 'ready');
  assert.equal((await answering).status, 200);
  assert.deepEqual(api.steps, []);
});

test('a failed wake is 409 with its reason and is not retried for the same command', async () => {
  const { id } = await asleep();
  const answering = exec(id);
  await until(id, 'waking');
  await settle(id, 'stopped', { code: 'wake_failed', message: 'the disk is full' });
  const answer = await answering;
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_state_conflict']);
  assert.match(answer.body.error.message, /the sandbox is stopped.*the disk is full/);
  assert.deepEqual([ran, api.steps.length], [0, 1]);
});

test("a wake longer than the command's wait is 409 with the status, and continues", async () => {
  const { id } = await asleep();
  const actor: Actor = {
    kind: 'api_key',
    id: 'key',
    userId: api.userId,
    requestId: null,
    orgId: api.orgId,
    scopes: null,
    role: 'owner',
  };
  const row = { ...(await rowOf(id)), host_url: api.front.url };
  await assert.rejects(
    awakeForUse(api.context, actor, row, 'exec', new AbortController().signal, 50),
    (error: unknown) => {
      assert.ok(error instanceof CodedError);
      assert.equal(error.code, 'sandbox_state_conflict');
      assert.match(error.message, /the sandbox is waking/);
      return true;
    },
  );
  assert.equal((await rowOf(id)).status, 'waking');
});

test('a refused wake refuses the command: nothing to wake, no plan, too many awake, no capacity', async () => {
  const refused = async (id: string): Promise<[number, string]> => {
    const answer = await exec(id);
    return [answer.status, answer.body.error.code];
  };
  assert.deepEqual(await refused((await asleep({ wakes_from: null })).id), [400, 'wake_not_possible']);
  assert.deepEqual(await refused((await asleep({ allocated_vcpu: 5_000 })).id), [503, 'insufficient_capacity']);
  const { id } = await asleep();
  await api.db.updateTable('subscription').set({ plan: 'lone' }).where('org_id', '=', api.orgId).execute();
  await api.makeSandbox('ready');
  assert.deepEqual(await refused(id), [409, 'concurrent_sandbox_limit']);
  await api.db
    .updateTable('subscription')
    .set({ plan: 'self-hosted', status: 'canceled' })
    .where('org_id', '=', api.orgId)
    .execute();
  assert.deepEqual(await refused(id), [402, 'no_active_plan']);
  await api.db.updateTable('subscription').set({ status: 'active' }).where('org_id', '=', api.orgId).execute();
  assert.deepEqual([ran, api.steps], [0, []]);
});

test('a caller that disconnects during the wake leaves no command; the wake continues', async () => {
  const { id } = await asleep();
  const gone = new AbortController();
  const answering = api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'true' }, signal: gone.signal });
  await until(id, 'waking');
  gone.abort();
  await assert.rejects(answering, { name: 'AbortError' });
  await settle(id, 'ready');
  // Another caller's command follows.
  assert.equal((await exec(id)).status, 200);
  assert.equal(ran, 1);
});

// Status transitions: every pair of statuses, epochs, metering, and waiters.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SANDBOX_STATES, sandboxStatus, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import {
  transitionSandbox,
  type Transition,
  type TransitionResult,
} from '../../../src/services/sandboxes/transition.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
const transition = (wanted: Omit<Transition, 'actor'>): Promise<TransitionResult> =>
  api.db.transaction().execute((trx) => transitionSandbox(trx, { ...wanted, actor: SYSTEM }));
const reasonFor = (to: string): { reason?: { code: string; message: string } } =>
  to === 'failed' ? { reason: { code: 'x', message: 'y' } } : {};

for (const from of sandboxStatus.options) {
  for (const to of sandboxStatus.options) {
    const expected = from === to ? 'already' : SANDBOX_STATES[from].next.includes(to) ? 'changed' : 'void';
    test(`${from} to ${to}: ${expected}`, async () => {
      const before = await api.makeSandbox(from);
      const { outcome } = await transition({ sandboxId: before.id, epoch: 1, to, ...reasonFor(to) });
      assert.equal(outcome, expected);
      const after = await api.db
        .selectFrom('sandbox')
        .selectAll()
        .where('id', '=', before.id)
        .executeTakeFirstOrThrow();
      const events = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', before.id).execute();
      if (expected === 'changed') {
        assert.equal(after.status, to);
        assert.deepEqual(
          events.map((event) => event.details),
          [{ from, to, ...reasonFor(to) }],
        );
      } else {
        assert.deepEqual([after, events], [before, []]);
      }
    });
  }
}

const kindOf = async (from: SandboxStatus, to: SandboxStatus): Promise<string | undefined> => {
  const { id } = await api.makeSandbox(from);
  await transition({ sandboxId: id, epoch: 1, to, ...reasonFor(to) });
  return (await api.db.selectFrom('activity').select('kind').where('sandbox_id', '=', id).executeTakeFirst())?.kind;
};

for (const [from, to, kind] of [
  ['provisioning', 'ready', 'sandbox_ready'],
  ['provisioning', 'failed', 'sandbox_failed'],
  ['ready', 'sleeping', 'sandbox_sleep_requested'],
  ['sleeping', 'stopped', 'sandbox_stopped'],
  ['sleeping', 'ready', 'sandbox_sleep_failed'],
  ['sleeping', 'failed', 'sandbox_failed'],
  ['ready', 'stopped', 'sandbox_stopped'],
  ['ready', 'failed', 'sandbox_failed'],
  ['stopped', 'waking', 'sandbox_wake_requested'],
  ['failed', 'waking', 'sandbox_wake_requested'],
  ['waking', 'ready', 'sandbox_woken'],
  ['waking', 'stopped', 'sandbox_wake_failed'],
  ['waking', 'failed', 'sandbox_wake_failed'],
  ['stopped', 'failed', 'sandbox_failed'],
  ['failed', 'ready', 'sandbox_recovered'],
  ['failed', 'stopped', 'sandbox_recovered'],
  ['waking', 'destroying', 'sandbox_destroy_requested'],
  ['destroying', 'deleted', 'sandbox_deleted'],
] as const)
  test(`the feed records ${from} to ${to} as ${kind}`, async () => assert.equal(await kindOf(from, to), kind));

test('the wake source is known while asleep, kept during the wake, and absent while awake', async () => {
  const { id } = await api.makeSandbox('ready');
  const steps: [to: SandboxStatus, given: 'snapshot' | 'disk' | null, kept: 'snapshot' | 'disk' | null][] = [
    ['sleeping', null, null],
    ['stopped', 'snapshot', 'snapshot'],
    ['waking', null, 'snapshot'],
    ['stopped', 'disk', 'disk'],
    ['waking', null, 'disk'],
    ['ready', null, null],
    ['failed', 'disk', 'disk'],
    ['destroying', null, null],
    ['deleted', null, null],
  ];
  for (const [to, wakesFrom, expected] of steps) {
    const { outcome, sandbox } = await transition({ sandboxId: id, epoch: 1, to, wakesFrom, ...reasonFor(to) });
    assert.deepEqual([outcome, sandbox?.wakes_from], ['changed', expected], to);
  }
});

test('becoming awake counts as activity; becoming ready while awake does not', async () => {
  const longAgo = new Date(Date.now() - 3_600_000);
  const { id } = await api.makeSandbox('waking', { last_active_at: longAgo });
  const woken = await transition({ sandboxId: id, epoch: 1, to: 'running' });
  assert.ok((woken.sandbox?.last_active_at.getTime() ?? 0) > longAgo.getTime());
  const ready = await transition({ sandboxId: id, epoch: 1, to: 'ready' });
  assert.deepEqual(ready.sandbox?.last_active_at, woken.sandbox?.last_active_at);
});

test('metered time of a lost VM ends at the last proof of life, never before its start', async () => {
  for (const [lastAliveAt, expected] of [
    [new Date(Date.now() - 3_600_000), 'begin'],
    [new Date(Date.now() + 3_600_000), 'now'],
    [null, 'now'],
  ] as const) {
    const { id } = await api.makeSandbox('provisioning');
    await transition({ sandboxId: id, epoch: 1, to: 'ready' });
    await transition({ sandboxId: id, epoch: 1, to: 'failed', lastAliveAt, reason: { code: 'x', message: 'y' } });
    const { rows } = await sql<{ length: number; age: number }>`
      select extract(epoch from upper(during) - lower(during))::float8 as length,
        extract(epoch from now() - upper(during))::float8 as age
      from usage_interval where sandbox_id = ${id}`.execute(api.db);
    if (expected === 'begin') {
      assert.equal(rows[0]?.length, 0.000001);
    } else {
      assert.ok(
        rows.length === 1 && rows[0] !== undefined && rows[0].length > 0.000001 && rows[0].age >= 0,
        JSON.stringify(rows),
      );
    }
  }
});

test('a VM that returns after a clock step back is metered from its previous end', async () => {
  const { id } = await api.makeSandbox('provisioning');
  await transition({ sandboxId: id, epoch: 1, to: 'ready' });
  // The clock was an hour ahead at the wake, and is correct again at the sleep.
  await sql`
    update usage_interval set during = tstzrange(now() + interval '1 hour', null)
    where sandbox_id = ${id}`.execute(api.db);
  await transition({ sandboxId: id, epoch: 1, to: 'sleeping' });
  await transition({ sandboxId: id, epoch: 1, to: 'ready' });
  const { rows } = await sql<{ touches: boolean }>`
    select a.during -|- b.during as touches from usage_interval a, usage_interval b
    where a.sandbox_id = ${id} and b.sandbox_id = ${id} and not upper_inf(a.during) and upper_inf(b.during)`.execute(
    api.db,
  );
  assert.deepEqual(rows, [{ touches: true }]);
});

test('a step of another epoch or of a missing sandbox is void', async () => {
  const { id } = await api.makeSandbox('provisioning', { epoch: 2 });
  for (const epoch of [1, 3]) assert.equal((await transition({ sandboxId: id, epoch, to: 'ready' })).outcome, 'void');
  assert.equal(
    (await transition({ sandboxId: 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa', epoch: 1, to: 'ready' })).outcome,
    'void',
  );
});

test('a new intent raises the epoch and so voids the step in progress', async () => {
  const { id } = await api.makeSandbox('provisioning');
  const result = await transition({ sandboxId: id, epoch: 1, to: 'destroying', newEpoch: true });
  assert.equal(result.sandbox?.epoch, 2);
  assert.equal((await transition({ sandboxId: id, epoch: 1, to: 'ready' })).outcome, 'void');
});

test('metered time runs from the first to the last awake status, as one interval of one size', async () => {
  const { id } = await api.makeSandbox('provisioning', { allocated_vcpu: 4, end_user_id: 'eve' });
  const intervals = () => api.db.selectFrom('usage_interval').selectAll().where('sandbox_id', '=', id).execute();
  for (const to of ['running', 'ready'] as const) {
    await transition({ sandboxId: id, epoch: 1, to });
    const open = await intervals();
    assert.equal(open.length, 1);
    assert.match(open[0]?.during ?? '', /,\)$/);
    assert.deepEqual([open[0]?.vcpu, open[0]?.end_user_id], [4, 'eve']);
  }
  await transition({ sandboxId: id, epoch: 1, to: 'failed', reason: { code: 'machine_lost', message: 'gone' } });
  await transition({ sandboxId: id, epoch: 1, to: 'destroying' });
  await transition({ sandboxId: id, epoch: 1, to: 'deleted' });
  const closed = await intervals();
  assert.equal(closed.length, 1);
  assert.doesNotMatch(closed[0]?.during ?? '', /,\)$/);
});

test('two racing steps of a sandbox are one change', async () => {
  const { id } = await api.makeSandbox('provisioning');
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, () => transition({ sandboxId: id, epoch: 1, to: 'ready' })),
  );
  assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), [...Array<string>(7).fill('already'), 'changed']);
});

test('watchers are notified on commit and not on rollback', async () => {
  const { id } = await api.makeSandbox('provisioning');
  const watch = api.context.changes.watch(id);
  try {
    await assert.rejects(
      api.db.transaction().execute(async (trx) => {
        await transitionSandbox(trx, { sandboxId: id, epoch: 1, to: 'ready', actor: SYSTEM });
        throw new Error('rolled back');
      }),
      /rolled back/,
    );
    let told = false;
    const next = watch.next(AbortSignal.timeout(20_000)).then(() => (told = true));
    assert.equal(told, false);
    await transition({ sandboxId: id, epoch: 1, to: 'ready' });
    await next;
  } finally {
    watch.close();
  }
});

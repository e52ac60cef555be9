// The one way a status changes: every pair of statuses, epochs, usage, and what waits.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandbox-state.ts';
import { transitionSandbox, type Transition, type TransitionResult } from '../../src/services/sandbox-transition.ts';
import { startApi, type TestApi } from '../api.ts';

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
      const after = await api.db.selectFrom('sandbox').selectAll().where('id', '=', before.id).executeTakeFirstOrThrow();
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

test('a step of an older or a newer epoch is void, and so is one for a sandbox that does not exist', async () => {
  const { id } = await api.makeSandbox('provisioning', { epoch: 2 });
  for (const epoch of [1, 3]) assert.equal((await transition({ sandboxId: id, epoch, to: 'ready' })).outcome, 'void');
  assert.equal((await transition({ sandboxId: 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa', epoch: 1, to: 'ready' })).outcome, 'void');
});

test('a new intent raises the epoch, which voids what was under way', async () => {
  const { id } = await api.makeSandbox('provisioning');
  const result = await transition({ sandboxId: id, epoch: 1, to: 'destroying', newEpoch: true });
  assert.equal(result.sandbox?.epoch, 2);
  assert.equal((await transition({ sandboxId: id, epoch: 1, to: 'ready' })).outcome, 'void');
});

test('machine time is metered from the first awake status to the last, in one interval of the size at that time', async () => {
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

test('two steps that race for one sandbox are one change', async () => {
  const { id } = await api.makeSandbox('provisioning');
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => transition({ sandboxId: id, epoch: 1, to: 'ready' })));
  assert.deepEqual(outcomes.map(({ outcome }) => outcome).toSorted(), [...Array<string>(7).fill('already'), 'changed']);
});

test('who watches is told when the change commits, and not when it is rolled back', async () => {
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

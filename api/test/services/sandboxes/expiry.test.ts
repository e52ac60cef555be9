// Effect of the expiry in each status.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { expireSandbox } from '../../../src/services/sandboxes/ephemeral.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const ephemeral = (leftMs: number) => ({
  mode: 'ephemeral',
  ttl_seconds: 60,
  expires_at: new Date(Date.now() + leftMs),
});

for (const status of sandboxStatus.options) {
  const ending = status === 'destroying' || status === 'deleted';
  test(`an expired sandbox that is ${status} ${ending ? 'stays' : 'gets a new epoch and a destroy'}`, async () => {
    const before = await api.makeSandbox(status, ephemeral(-10));
    api.steps.length = 0;
    assert.equal(await expireSandbox(api.context, before.id), !ending);
    const after = await rowOf(before.id);
    if (ending) {
      assert.deepEqual([after, api.steps], [before, []]);
      return;
    }
    assert.deepEqual([after.status, after.epoch], ['destroying', before.epoch + 1]);
    assert.deepEqual(api.steps, [{ kind: 'destroy', step: { sandboxId: before.id, epoch: after.epoch } }]);
    const events = await api.db.selectFrom('activity').select('kind').where('sandbox_id', '=', before.id).execute();
    assert.deepEqual(events, [{ kind: 'sandbox_expired' }]);
  });

  if (ending) continue;
  test(`a sandbox that is ${status} and has no expiry in the past is left alone`, async () => {
    for (const before of [await api.makeSandbox(status, ephemeral(60_000)), await api.makeSandbox(status)]) {
      assert.equal(await expireSandbox(api.context, before.id), false);
      assert.deepEqual(await rowOf(before.id), before);
    }
  });
}

test('two concurrent expiries end a sandbox once', async () => {
  const { id } = await api.makeSandbox('ready', ephemeral(-10));
  const ended = await Promise.all(Array.from({ length: 4 }, () => expireSandbox(api.context, id)));
  assert.equal(ended.filter(Boolean).length, 1);
  assert.equal((await rowOf(id)).epoch, 2);
});

// Causes of a slow start, by what the host reported.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

for (const [status, accelerator, ready, expected] of [
  ['provisioning', 'tcg', 0, ['emulation', 'no_warm_vm']],
  ['provisioning', 'kvm', 0, ['no_warm_vm']],
  ['provisioning', 'kvm', null, []],
  ['waking', 'tcg', 0, ['emulation']],
  ['ready', 'tcg', 0, undefined],
] as const) {
  test(`a ${status} sandbox returns its delays on ${accelerator} with ${ready ?? 'unknown'} warm VMs`, async () => {
    const { id, host_id: hostId } = await api.makeSandbox(status);
    await api.db
      .updateTable('host')
      .set({ accelerator, pool_ready: ready })
      .where('id', '=', hostId ?? '')
      .execute();
    const { body } = await api.call('GET', `/v1/sandboxes/${id}`);
    assert.deepEqual(body.sandbox.startDelays, expected);
  });
}

// Hosts by the SDK on the real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Berth, BerthError } from '../src/index.ts';
import { upsertHost } from '../../api/src/store/hosts/hosts.ts';
import { startApi, type TestApi } from '../../api/test/world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const clientOf = (apiKey: string): Berth => new Berth({ url: api.url, apiKey });

test('all walks the pages of the hosts, and get returns a host with its sandboxes', async () => {
  const room = { vcpu: 4, memoryMib: 4_096, diskGib: 100 };
  for (const id of ['hst_a', 'hst_b']) {
    const host = { id, url: 'unix:/nowhere', startId: '1', driver: 'qemu', accelerator: 'kvm' };
    await upsertHost(api.db, { ...host, capacity: room, reserved: room });
  }
  const { id } = await api.makeSandbox('ready', { host_id: 'hst_b' });
  const { hosts } = clientOf(api.token);
  const walked: string[] = [];
  for await (const host of hosts.all({ limit: 1 })) walked.push(host.id);
  assert.deepEqual(walked, [api.host.hostId, 'hst_a', 'hst_b']);
  assert.deepEqual((await hosts.list({ limit: 2 })).hasMore, true);
  const { host, sandboxes } = await hosts.get('hst_b');
  assert.deepEqual([host.free.vcpu, host.state, sandboxes.map((one) => one.id)], [3, 'available', [id]]);
});

test('a key of another org is refused, and an unknown host is not found', async () => {
  const { token } = await api.makeOrg();
  const codeOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => 'no error',
      (error: unknown) => (error instanceof BerthError ? error.code : error),
    );
  assert.equal(await codeOf(clientOf(token).hosts.list()), 'org_access_denied');
  assert.equal(await codeOf(clientOf(api.token).hosts.get('<img src=x>')), 'host_not_found');
});

// Model access of VMs, as the API sends it to a host.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AGENT_PROVIDERS } from '@berth/contract/agents/credentials.ts';
import { MODEL_PROVIDERS } from '@berth/protocol/calls/model-access.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { HostClient } from '../../src/hosts/client.ts';
import { HostStandIn } from '../world/host-stand-in.ts';

const VM = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'a', sshAuthorizedKeys: [] };
const ACCESS = {
  orgId: 'org_1',
  asOfMs: 5,
  version: 'v5',
  agents: { agent_one: { endpoint: 'https://api.openai.com', key: 'sk-1' }, agent_two: null },
};

let folder: string;
let host: HostStandIn;
let client: HostClient;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-access-'));
  host = new HostStandIn(join(folder, 'socket'));
  await host.start();
  client = new HostClient({ url: host.url, token: () => host.token, streams: new SharedCapacity(8) });
});
after(async () => {
  client.close();
  await host.stop();
  await rm(folder, { recursive: true });
});

test('access is sent with the epoch, and refused for a VM that does not run or has a newer one', async () => {
  await assert.rejects(client.setModelAccess(VM, { epoch: 1, ...ACCESS }), { code: 'vm_not_running' });
  host.addVm(VM, 2, SPEC);
  await assert.rejects(client.setModelAccess(VM, { epoch: 1, ...ACCESS }), { code: 'stale_epoch' });
  await client.setModelAccess(VM, { epoch: 2, ...ACCESS });
  assert.deepEqual(host.modelAccess.get(VM), ACCESS);
  await client.setModelAccess(VM, { epoch: 2, ...ACCESS, asOfMs: 4, agents: { agent_one: null, agent_two: null } });
  assert.deepEqual(host.modelAccess.get(VM), ACCESS, 'an older access changes nothing');
});

test('the agents have the same providers at the API and at the gateway', () => {
  assert.deepEqual(MODEL_PROVIDERS, AGENT_PROVIDERS);
});

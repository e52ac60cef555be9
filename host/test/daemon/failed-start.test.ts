// A daemon that fails after it adopted VMs exits, leaves them running and frees the folder.
import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DaemonFixture } from './daemon-process.ts';
import { vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };

let daemon: DaemonFixture;
before(async () => {
  daemon = await DaemonFixture.make(['--driver', 'fake', '--pool-max', '0']);
});
after(() => daemon.remove());

test('a host daemon that cannot listen exits with its reason; the next one adopts the VMs', async () => {
  const id = vmIdOf('a');
  await daemon.start();
  const made = await daemon.call('PUT', `/vms/${id}`, { epoch: 1, spec: SPEC });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal(await daemon.end('SIGTERM'), 0);

  const run = join(daemon.root, 'run');
  await rename(run, `${run}.aside`);
  await writeFile(run, 'no folder');
  await assert.rejects(daemon.start(), /the daemon ended with 1: .*berth host: .*(EEXIST|ENOTDIR)/s);
  assert.equal(await daemon.ended(), 1);

  await rm(run);
  await rename(`${run}.aside`, run);
  assert.equal(await daemon.start(), true);
  const found = await daemon.call('GET', `/vms/${id}`);
  assert.deepEqual([found.status, (found.body as { status: string }).status], [200, 'running']);
  assert.equal((await daemon.call('DELETE', `/vms/${id}?epoch=2`)).status, 200);
  assert.equal(await daemon.end('SIGTERM'), 0);
});

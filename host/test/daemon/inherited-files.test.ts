// A file that the caller of the host daemon left open reaches no VM.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { processesWith } from '../../../os/test/open-files.ts';
import { SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import { DaemonFixture } from './daemon-process.ts';

let daemon: DaemonFixture;
before(async () => {
  daemon = await DaemonFixture.make(['--driver', 'fake', '--pool-max', '0']);
});
after(() => daemon.remove());

test('a file that the caller left open in the host daemon is open in no process', async () => {
  const file = join(daemon.root, 'file-of-the-caller');
  writeFileSync(file, 'secret');
  assert.equal(await daemon.start({ inheritedFile: file }), true);
  const id = vmIdOf('a');
  const made = await daemon.call('PUT', `/vms/${id}`, { epoch: 1, spec: SMALL });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.deepEqual(processesWith(file), []);
  assert.equal((await daemon.call('DELETE', `/vms/${id}?epoch=2`)).status, 200);
  assert.equal(await daemon.end('SIGTERM'), 0);
});

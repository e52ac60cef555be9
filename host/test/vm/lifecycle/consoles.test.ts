// Consoles of VMs: read while they run, kept when they die, gone with the next run or the destroy.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CONSOLE_BYTES, vmConsole } from '@berth/protocol/calls/vms.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { SilentBoot } from '../../../src/vm/driver.ts';
import { failing } from '../scripted-driver.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');
const dataKey = randomBytes(32).toString('base64url');
const PANIC = '[ 1.0] Kernel panic - not syncing: watched for\r\n';

describe('the console of a VM', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL, dataKey });
    host.driver.onConsole = async () => ({ text: PANIC, truncated: false });
  });
  afterEach(async () => {
    await host.stop();
  });

  const read = (key: string | null = dataKey) => host.lifecycle.consoles.read(A, key);
  const file = (): string => join(host.root, 'vms', A, 'console');

  async function die(): Promise<void> {
    await host.machine.kill(A, 'the guest panicked', 'guest_panic');
    await host.becomes(A, 'dead');
    // The last step of a death.
    const held = join(host.root, 'keys', A);
    await untilTrue('the data key is forgotten', async () => (await stat(held).catch(() => null)) === null);
  }

  it('of a running VM is as the driver reads it, and is on no disk', async () => {
    assert.deepEqual(await read(null), { console: { text: PANIC, truncated: false, booted: false } });
    await assert.rejects(stat(file()), { code: 'ENOENT' });
  });

  it('of a dead VM is kept sealed with its data key, also for the next daemon', async () => {
    await die();
    const kept = { console: { text: PANIC, truncated: false, booted: false } };
    assert.deepEqual(await read(), kept);
    assert.ok(!(await readFile(file(), 'utf8')).includes('watched for'));
    await host.restart();
    assert.deepEqual(await read(), kept);
    for (const key of [null, randomBytes(32).toString('base64url')])
      assert.deepEqual(await read(key), { console: null, missing: 'sealed' });
    await writeFile(file(), 'damaged');
    assert.deepEqual(await read(), { console: null, missing: 'not_kept' });
    await host.lifecycle.wake(A, { epoch: 2, spec: SMALL, dataKey });
    await assert.rejects(stat(file()), { code: 'ENOENT' });
  });

  it('of a VM that booted its disk is marked so', async () => {
    await die();
    await host.lifecycle.wake(A, { epoch: 2, spec: SMALL, dataKey });
    assert.deepEqual(await read(), { console: { text: PANIC, truncated: false, booted: true } });
  });

  it('of a boot whose guest never responded is kept, and not replaced by nothing', async () => {
    await die();
    host.driver.onConsole = async () => null;
    host.driver.onBoot = async () => {
      throw new SilentBoot('the guest daemon: no response', { text: 'No working init found.', truncated: true });
    };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 2, spec: SMALL, dataKey }), { code: 'wake_failed' });
    assert.deepEqual(await read(), { console: { text: 'No working init found.', truncated: true, booted: true } });
  });

  it('is limited to 64 KiB, whatever a driver reads, and fits the response', async () => {
    host.driver.onConsole = async () => ({ text: `${'\u0001'.repeat(CONSOLE_BYTES)}end`, truncated: false });
    for (const found of [await read(), (await die(), await read())]) {
      const { console } = vmConsole.parse(found);
      assert.deepEqual(
        [console?.text.length, console?.truncated, console?.text.slice(-3)],
        [CONSOLE_BYTES, true, 'end'],
      );
    }
    assert.ok((await stat(file())).size < 10 * CONSOLE_BYTES);
  });

  it('is missing with a reason: asleep, not kept, no response; an unknown VM has none', async () => {
    host.driver.onConsole = failing('QEMU does not respond');
    assert.deepEqual(await read(), { console: null, missing: 'no_response' });
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.deepEqual(await read(), { console: null, missing: 'asleep' });
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey });
    // A console that cannot be read does not keep a VM from being dead.
    await die();
    assert.deepEqual(await read(), { console: null, missing: 'not_kept' });
    await host.lifecycle.destroy(A, 4);
    await assert.rejects(read(), { code: 'vm_not_found' });
  });

  it('is not read while a verb is in progress, and waits for none', async () => {
    const sleeping = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    host.driver.onSleep = async () => {
      sleeping.resolve();
      await released.promise;
    };
    const asleep = host.lifecycle.sleep(A, { epoch: 2 });
    await sleeping.promise;
    assert.deepEqual(await read(), { console: null, missing: 'busy' });
    released.resolve();
    await asleep;
  });

  it('is deleted with the VM', async () => {
    await die();
    await host.lifecycle.destroy(A, 2);
    await assert.rejects(stat(join(host.root, 'vms', A)), { code: 'ENOENT' });
  });
});

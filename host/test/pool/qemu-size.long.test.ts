// A larger VM from the pool, with the QEMU driver, on a private host. Needs root, the image and the
// template (`berth test` makes them).
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { hostInfo } from '@berth/protocol/calls/vms.ts';
import { vmView } from '@berth/protocol/host.ts';
import { readConfig } from '../../src/config.ts';
import { DaemonFixture } from '../daemon/daemon-process.ts';
import { SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { slotLeftovers, slotProcesses } from '../network/slots/slot-leftovers.ts';

enterPrivateHost();

const A = vmIdOf('a');
const SPEC = { ...SMALL, vcpu: 3, memoryMib: 3_072, diskGib: 20 };
const FILL_DEADLINE_MS = 240_000;
const { cacheFolder } = readConfig([], process.env);

describe('a larger VM made from a pool VM', () => {
  let daemon: DaemonFixture;
  before(async () => {
    const pool = ['--pool-min', '1', '--pool-max', '1'];
    daemon = await DaemonFixture.make(['--driver', 'qemu', '--cache-dir', cacheFolder, ...pool]);
    assert.equal(await daemon.start(), true);
    const deadline = performance.now() + FILL_DEADLINE_MS;
    while (hostInfo.parse((await daemon.call('GET', '/host')).body).pool.ready === 0) {
      assert.ok(performance.now() < deadline, `nothing waits: ${daemon.log.slice(-3).join('\n')}`);
      await delay(50);
    }
  });
  after(async () => {
    await daemon.end('SIGTERM');
    const left = [...slotProcesses(), ...slotLeftovers()];
    await daemon.remove();
    assert.deepEqual(left, []);
  });

  async function outputOf(command: string): Promise<string> {
    const { status, body } = await daemon.call('POST', `/vms/${A}/exec`, { command, timeoutSeconds: 60 });
    assert.equal(status, 200, JSON.stringify(body));
    return (body as { stdout: string }).stdout.trim();
  }

  it('has the requested size from inside and is the VM that waited', async () => {
    const { status, body } = await daemon.call('PUT', `/vms/${A}`, { epoch: 1, spec: SPEC });
    assert.equal(status, 200, JSON.stringify(body));
    const record = JSON.parse(await readFile(join(daemon.root, 'host', 'vms', A, 'record.json'), 'utf8')) as {
      machineId: string;
    };
    assert.match(record.machineId, /^pool_/);
    const [cpus, memoryMib, diskGib] = (
      await outputOf("nproc; free -m | awk '/Mem:/{print $2}'; df -BG --output=size / | tail -1")
    ).split('\n');
    assert.equal(Number(cpus), SPEC.vcpu);
    assert.ok(Number(memoryMib) > SPEC.memoryMib * 0.85, memoryMib);
    assert.ok(Number.parseInt(diskGib ?? '', 10) >= SPEC.diskGib * 0.9, diskGib);
  });

  it('sleeps and wakes as the same VM', async () => {
    await outputOf('echo kept > /dev/shm/note');
    const asleep = await daemon.call('POST', `/vms/${A}/sleep`, { epoch: 2 });
    assert.equal(asleep.status, 200, JSON.stringify(asleep.body));
    const woken = await daemon.call('POST', `/vms/${A}/wake`, { epoch: 3, spec: SPEC });
    assert.equal(woken.status, 200, JSON.stringify(woken.body));
    assert.equal(vmView.parse(woken.body).woke?.from, 'snapshot', JSON.stringify(woken.body));
    assert.equal(await outputOf('cat /dev/shm/note; nproc'), 'kept\n3');
    assert.equal((await daemon.call('DELETE', `/vms/${A}?epoch=4`)).status, 200);
  });
});

// Kills the real daemon at every durable step of create and destroy, with the fake driver, and looks at what the next one makes of it.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { vmView, type VmView } from '@berth/protocol/host.ts';
import { CRASH_POINTS, type CrashPoint } from '../src/vm/crash-point.ts';
import { findMarked } from '../src/vm/fake/find.ts';
import { DaemonFixture } from './daemon-process.ts';
import { SMALL, vmIdOf } from './vm/lifecycle-fixture.ts';

const A = vmIdOf('a');
const CREATE = { epoch: 1, spec: SMALL };
/** The fake driver saves its state before it starts the process, and again after. */
const CREATE_POINTS = CRASH_POINTS.filter((point) => point.startsWith('create:')).flatMap((point) =>
  point === 'create:driver-state-saved' ? [point, `${point}#2`] : [point],
);
const DESTROY_POINTS = CRASH_POINTS.filter((point) => point.startsWith('destroy:'));

describe('a host daemon that is killed', () => {
  let daemon: DaemonFixture;
  before(async () => {
    daemon = await DaemonFixture.make(['--driver', 'fake']);
  });
  after(async () => {
    const left = await vmsOnMachine();
    await daemon.remove();
    assert.deepEqual(left, []);
  });

  /** Ids of the fake VMs of this installation that have a process. */
  async function vmsOnMachine(): Promise<string[]> {
    const instanceId = await daemon.instanceId();
    return [...new Set((await findMarked((mark) => mark.instanceId === instanceId)).map(({ mark }) => mark.folder))];
  }

  async function view(): Promise<VmView | null> {
    const { status, body } = await daemon.call('GET', `/vms/${A}`);
    return status === 404 ? null : vmView.parse(body);
  }

  async function destroyed(epoch: number): Promise<void> {
    const answer = await daemon.call('DELETE', `/vms/${A}?epoch=${epoch}`);
    assert.deepEqual(answer, { status: 200, body: { id: A, epoch, status: 'destroyed' } });
    assert.deepEqual([await daemon.folders(), await vmsOnMachine()], [[], []]);
  }

  let epoch = 0;
  for (const point of CREATE_POINTS) {
    it(`at ${point} makes the VM once when asked again, and leaves nothing of it when it is destroyed`, async () => {
      epoch += 2;
      assert.equal(await daemon.start({ crashAt: point }), true);
      await assert.rejects(daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch }));
      assert.equal(await daemon.ended(), 'SIGKILL');

      assert.equal(await daemon.start(), true);
      const found = await view();
      const running = found?.status === 'running';
      assert.equal(running, point === 'create:running-recorded', `found ${found?.status}`);
      assert.equal((await vmsOnMachine()).length, running ? 1 : 0);
      const made = await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal((await vmsOnMachine()).length, 1);
      const exec = await daemon.call('POST', `/vms/${A}/exec`, { command: 'echo here', timeoutSeconds: 20 });
      assert.equal((exec.body as { stdout: string }).stdout, 'here\n');
      await destroyed(epoch + 1);
      assert.equal(await daemon.end('SIGTERM'), 0);
    });
  }

  for (const point of DESTROY_POINTS) {
    it(`at ${point} has the destroy finished by the next daemon or by the next call`, async () => {
      epoch += 2;
      assert.equal(await daemon.start({ crashAt: point }), true);
      assert.equal((await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch })).status, 200);
      await assert.rejects(daemon.call('DELETE', `/vms/${A}?epoch=${epoch + 1}`));
      assert.equal(await daemon.ended(), 'SIGKILL');

      assert.equal(await daemon.start(), true);
      const found = await view();
      // Before the intent is on disk nothing was promised; from there on the next daemon finishes it unasked.
      assert.equal(found?.status, point === 'destroy:accepted' ? 'running' : 'destroyed');
      await destroyed(epoch + 1);
      const late = await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch });
      assert.equal(late.status, 409);
      assert.equal(await daemon.end('SIGTERM'), 0);
    });
  }

  it('again and again while it recovers, finishes in the end', async () => {
    epoch += 2;
    assert.equal(await daemon.start({ crashAt: 'destroy:recorded' }), true);
    assert.equal((await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch })).status, 200);
    await assert.rejects(daemon.call('DELETE', `/vms/${A}?epoch=${epoch + 1}`));
    await daemon.ended();
    const later: CrashPoint[] = [
      'destroy:recorded',
      'destroy:driver-done',
      'destroy:contents-removed',
      'destroy:fenced',
      'destroy:removed',
    ];
    for (const crashAt of later) {
      assert.equal(await daemon.start({ crashAt }), false, `${crashAt} was not reached`);
    }
    assert.equal(await daemon.start(), true);
    assert.equal((await view())?.status, 'destroyed');
    await destroyed(epoch + 1);
    assert.equal(await daemon.end('SIGTERM'), 0);
  });

  it('leaves VMs that the next one adopts, commands and all', async () => {
    epoch += 2;
    assert.equal(await daemon.start(), true);
    assert.equal((await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch })).status, 200);
    const write = await daemon.call('POST', `/vms/${A}/exec`, { command: 'echo kept > /code/note; echo $$', timeoutSeconds: 20 });
    assert.equal(write.status, 200);
    assert.equal(await daemon.end('SIGKILL'), 'SIGKILL');
    assert.equal(await daemon.start(), true);
    const read = await daemon.call('POST', `/vms/${A}/exec`, { command: 'cat /code/note', timeoutSeconds: 20 });
    assert.equal((read.body as { stdout: string }).stdout, 'kept\n');
    await destroyed(epoch + 1);
    assert.equal(await daemon.end('SIGTERM'), 0);
  });
});

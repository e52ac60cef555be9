// Kills the real daemon at every durable step of create and destroy and looks at what the next one makes of it. Told which driver the daemon uses and
// how to see that driver's VMs on the machine.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { vmView, type VmView } from '@berth/protocol/host.ts';
import { CRASH_POINTS, type CrashPoint } from '../src/vm/crash-point.ts';
import { DaemonFixture } from './daemon-process.ts';
import { SMALL, vmIdOf } from './vm/lifecycle-fixture.ts';

const A = vmIdOf('a');
const CREATE = { epoch: 1, spec: SMALL };
/** Both drivers save their state before they make anything, and again when there is a process. */
const CREATE_POINTS = CRASH_POINTS.filter((point) => point.startsWith('create:')).flatMap((point) =>
  point === 'create:driver-state-saved' ? [point, `${point}#2`] : [point],
);
const DESTROY_POINTS = CRASH_POINTS.filter((point) => point.startsWith('destroy:'));
const EXEC_SECONDS = 30;

export interface CrashSubject {
  /** The daemon's flags, beside its data folder. */
  flags: readonly string[];
  /** One entry for each VM of the installation that has a process. */
  vmsOnMachine(instanceId: string): Promise<string[]>;
  /** What else a VM may have on the machine: one sentence each, whoever's it is. Empty when there are no VMs and no daemon. */
  leftovers(): Promise<string[]>;
}

export function crashSuite(title: string, subject: CrashSubject): void {
  describe(title, () => {
    let daemon: DaemonFixture;
    before(async () => {
      daemon = await DaemonFixture.make([...subject.flags, '--pool-max', '0']);
    });
    after(async () => {
      const left = [...(await vmsOnMachine()), ...(await subject.leftovers())];
      await daemon.remove();
      assert.deepEqual(left, []);
    });

    async function vmsOnMachine(): Promise<string[]> {
      return subject.vmsOnMachine(await daemon.instanceId());
    }

    async function view(): Promise<VmView | null> {
      const { status, body } = await daemon.call('GET', `/vms/${A}`);
      return status === 404 ? null : vmView.parse(body);
    }

    async function outputOf(command: string): Promise<string> {
      const { status, body } = await daemon.call('POST', `/vms/${A}/exec`, { command, timeoutSeconds: EXEC_SECONDS });
      assert.equal(status, 200, JSON.stringify(body));
      return (body as { stdout: string }).stdout;
    }

    async function created(epoch: number): Promise<void> {
      const { status, body } = await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch });
      assert.equal(status, 200, JSON.stringify(body));
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
        await created(epoch);
        assert.equal((await vmsOnMachine()).length, 1);
        assert.equal(await outputOf('echo here'), 'here\n');
        await destroyed(epoch + 1);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    for (const point of DESTROY_POINTS) {
      it(`at ${point} has the destroy finished by the next daemon or by the next call`, async () => {
        epoch += 2;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
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
      await created(epoch);
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

    it('leaves VMs that the next one adopts, files and all', async () => {
      epoch += 2;
      assert.equal(await daemon.start(), true);
      await created(epoch);
      await outputOf('echo kept > /code/note');
      assert.equal(await daemon.end('SIGKILL'), 'SIGKILL');
      assert.equal(await daemon.start(), true);
      assert.equal(await outputOf('cat /code/note'), 'kept\n');
      await destroyed(epoch + 1);
      assert.equal(await daemon.end('SIGTERM'), 0);
    });
  });
}

// Kills the real daemon at every durable step of every verb and checks the state that the next
// daemon reaches. Parameters: the driver, and the view of that driver's VMs on the host.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { vmView, type VmView } from '@berth/protocol/host.ts';
import { CRASH_POINTS, type CrashPoint } from '../../src/vm/crash-point.ts';
import { pointsOf } from '../../../os/test/crash-points.ts';
import { DaemonFixture } from './daemon-process.ts';
import { SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';

const A = vmIdOf('a');
const DATA_KEY = randomBytes(32).toString('base64url');
const CREATE = { epoch: 1, spec: SMALL, dataKey: DATA_KEY };
/** Both drivers save their state before they start anything, and again when the process exists. */
const CREATE_POINTS = pointsOf(CRASH_POINTS, 'create:').flatMap((point) =>
  point === 'create:driver-state-saved' ? [point, `${point}#2`] : [point],
);
const DESTROY_POINTS = pointsOf(CRASH_POINTS, 'destroy:');
/** Like a create, a wake and a boot save the driver's state twice. */
const twice = (point: CrashPoint): string[] =>
  point.endsWith(':driver-state-saved') ? [point, `${point}#2`] : [point];
const LARGER = { vcpu: 2, memoryMib: 2_048, diskGib: 12 };
const EXEC_SECONDS = 30;

/** Disk and memory of a guest have their own tests. */
const isOfGuest = (folder: string): boolean => /\/(vm|snapshot)$/.test(folder);

interface CrashSubject {
  /** The daemon's flags, besides its data folder. */
  flags: readonly string[];
  /** An entry for each VM of the installation that has a process. */
  vmsOnHost(instanceId: string): Promise<string[]>;
  /** True if a wake saves driver state and an asleep VM has no process; false for the fake. */
  snapshots: boolean;
  /** Points to kill at, of those of a verb. */
  pointsOf<Point extends string>(points: readonly Point[]): readonly Point[];
  /** Other traces of VMs on the host, one sentence each. Empty without VMs and daemon. */
  leftovers(): Promise<string[]>;
}

export function crashSuite(title: string, subject: CrashSubject): void {
  describe(title, () => {
    let daemon: DaemonFixture;
    before(async () => {
      daemon = await DaemonFixture.make([...subject.flags, '--pool-max', '0']);
    });
    // A failed test must not block the next one's daemon.
    afterEach(async () => {
      await daemon.end('SIGKILL');
    });
    after(async () => {
      const left = [...(await vmsOnHost()), ...(await subject.leftovers())];
      await daemon.remove();
      assert.deepEqual(left, []);
    });

    async function vmsOnHost(): Promise<string[]> {
      return subject.vmsOnHost(await daemon.instanceId());
    }

    /** The daemon was killed, and no file that outlives it has a secret of the VM in plain text. */
    async function killed(): Promise<void> {
      assert.equal(await daemon.ended(), 'SIGKILL');
      const entries = await readdir(join(daemon.root, 'host'), { recursive: true, withFileTypes: true });
      for (const { name, parentPath } of entries.filter((entry) => entry.isFile() && !isOfGuest(entry.parentPath))) {
        const text = await readFile(join(parentPath, name), 'utf8');
        assert.ok(!text.includes(DATA_KEY) && !text.includes('PRIVATE KEY'), name);
        if (/^guest-secret|^disk-key/.test(name)) assert.match(text, /^sealed-1:/);
      }
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
      assert.deepEqual([await daemon.folders(), await vmsOnHost()], [[], []]);
    }

    async function post(verb: 'sleep' | 'wake' | 'resize', body: object): ReturnType<DaemonFixture['call']> {
      return daemon.call('POST', `/vms/${A}/${verb}`, verb === 'wake' ? { dataKey: DATA_KEY, ...body } : body);
    }

    async function requestVerb(verb: 'sleep' | 'wake' | 'resize', body: object): Promise<VmView> {
      const answer = await post(verb, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return vmView.parse(answer.body);
    }

    /** Starts a process that exists only in memory; resolves once it runs. */
    async function startProcess(): Promise<void> {
      await outputOf(
        'cp /usr/bin/sleep /code/witness; setsid /code/witness 100000 > /dev/null 2>&1 & ' +
          'until cat /proc/[0-9]*/comm | grep -qx witness; do :; done',
      );
    }

    async function hasProcess(): Promise<void> {
      assert.equal(await outputOf('cat /proc/[0-9]*/comm 2> /dev/null | grep -cx witness'), '1\n');
    }

    /** Corrupts every file of the snapshot, so that none verifies. */
    async function corruptSnapshot(): Promise<void> {
      const folder = join(daemon.root, 'host', 'vms', A, 'snapshot');
      for (const name of await readdir(folder)) {
        const file = await open(join(folder, name), 'r+');
        await file.write('corrupt', 0);
        await file.close();
      }
    }

    let epoch = 0;
    for (const point of subject.pointsOf(CREATE_POINTS)) {
      it(`at ${point} creates the VM once when retried, and leaves nothing after its destroy`, async () => {
        epoch += 2;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await assert.rejects(daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch }));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        const running = found?.status === 'running';
        assert.equal(running, point === 'create:running-recorded', `found ${found?.status}`);
        assert.equal((await vmsOnHost()).length, running ? 1 : 0);
        await created(epoch);
        assert.equal((await vmsOnHost()).length, 1);
        assert.equal(await outputOf('echo here'), 'here\n');
        await destroyed(epoch + 1);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    for (const point of subject.pointsOf(DESTROY_POINTS)) {
      it(`at ${point} lets the next daemon or call finish the destroy`, async () => {
        epoch += 2;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
        await assert.rejects(daemon.call('DELETE', `/vms/${A}?epoch=${epoch + 1}`));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        // Nothing is promised until the intent is on disk; from then on the next daemon finishes
        // the destroy by itself.
        assert.equal(found?.status, point === 'destroy:accepted' ? 'running' : 'destroyed');
        await destroyed(epoch + 1);
        const late = await daemon.call('PUT', `/vms/${A}`, { ...CREATE, epoch });
        assert.equal(late.status, 409);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    for (const point of subject.pointsOf(pointsOf(CRASH_POINTS, 'sleep:'))) {
      it(`at ${point} leaves the VM running or asleep, and the next call puts all of it to sleep`, async () => {
        epoch += 10;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
        await startProcess();
        await assert.rejects(post('sleep', { epoch: epoch + 1 }));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        const captured = !['sleep:accepted', 'sleep:recorded'].includes(point);
        assert.deepEqual(
          [found?.status, found?.epoch],
          [captured ? 'asleep' : 'running', point === 'sleep:accepted' ? epoch : epoch + 1],
        );
        assert.equal((await requestVerb('sleep', { epoch: epoch + 1 })).status, 'asleep');
        assert.equal((await vmsOnHost()).length, subject.snapshots ? 0 : 1);
        assert.equal((await requestVerb('wake', { epoch: epoch + 2, spec: SMALL })).woke?.from, 'snapshot');
        await hasProcess();
        await destroyed(epoch + 3);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    const wakePoints = pointsOf(CRASH_POINTS, 'wake:').filter(
      (point) => subject.snapshots || point !== 'wake:driver-state-saved',
    );
    for (const point of subject.pointsOf(wakePoints.flatMap(twice))) {
      it(`at ${point} leaves the VM asleep or wakes it, without losing a process`, async () => {
        epoch += 10;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
        await startProcess();
        await requestVerb('sleep', { epoch: epoch + 1 });
        await assert.rejects(post('wake', { epoch: epoch + 2, spec: SMALL }));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        const ran = wakePoints.indexOf(point.replace(/#.*/, '') as CrashPoint) > wakePoints.indexOf('wake:restored');
        if (ran) {
          assert.match(found?.status ?? '', /^(waking|running)$/);
        } else {
          assert.deepEqual([found?.status, found?.keeps], ['asleep', 'snapshot']);
          assert.equal((await vmsOnHost()).length, subject.snapshots ? 0 : 1);
        }
        const woken = await requestVerb('wake', { epoch: epoch + 2, spec: SMALL });
        assert.deepEqual([woken.status, woken.woke?.from], ['running', 'snapshot']);
        assert.equal((await vmsOnHost()).length, 1);
        await hasProcess();
        await requestVerb('sleep', { epoch: epoch + 3 });
        await requestVerb('wake', { epoch: epoch + 4, spec: SMALL });
        await hasProcess();
        await destroyed(epoch + 5);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    for (const point of subject.pointsOf(pointsOf(CRASH_POINTS, 'boot:').flatMap(twice))) {
      it(`at ${point} keeps the disk of a VM with an unusable snapshot, and the next call boots it`, async () => {
        epoch += 10;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
        await outputOf('echo kept > /code/note; sync');
        await requestVerb('sleep', { epoch: epoch + 1 });
        await corruptSnapshot();
        await assert.rejects(post('wake', { epoch: epoch + 2, spec: SMALL }));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        if (point === 'boot:continued-recorded') {
          assert.match(found?.status ?? '', /^(waking|running)$/);
        } else {
          assert.deepEqual([found?.status, found?.deathCode, found?.keeps], ['dead', 'wake_failed', 'disk']);
          assert.equal((await vmsOnHost()).length, 0);
        }
        const woken = await requestVerb('wake', { epoch: epoch + 2, spec: SMALL });
        assert.deepEqual([woken.status, woken.woke?.from], ['running', 'disk']);
        assert.equal(await outputOf('cat /code/note'), 'kept\n');
        await destroyed(epoch + 5);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    for (const point of subject.pointsOf(pointsOf(CRASH_POINTS, 'resize:'))) {
      it(`at ${point} leaves the VM running, and the next call gives it the new size`, async () => {
        epoch += 10;
        assert.equal(await daemon.start({ crashAt: point }), true);
        await created(epoch);
        await startProcess();
        await assert.rejects(post('resize', { epoch: epoch + 1, size: LARGER }));
        await killed();

        assert.equal(await daemon.start(), true);
        const found = await view();
        const before = point !== 'resize:recorded';
        assert.deepEqual([found?.status, found?.spec], ['running', before ? SMALL : { ...SMALL, ...LARGER }]);
        assert.deepEqual((await requestVerb('resize', { epoch: epoch + 1, size: LARGER })).spec, {
          ...SMALL,
          ...LARGER,
        });
        await hasProcess();
        await requestVerb('sleep', { epoch: epoch + 2 });
        assert.deepEqual((await requestVerb('wake', { epoch: epoch + 3, spec: { ...SMALL, ...LARGER } })).spec, {
          ...SMALL,
          ...LARGER,
        });
        await hasProcess();
        await destroyed(epoch + 4);
        assert.equal(await daemon.end('SIGTERM'), 0);
      });
    }

    it('at one step of a wake after another still wakes the VM in the end', async () => {
      epoch += 10;
      assert.equal(await daemon.start({ crashAt: 'wake:continued-recorded' }), true);
      await created(epoch);
      await startProcess();
      await requestVerb('sleep', { epoch: epoch + 1 });
      await assert.rejects(post('wake', { epoch: epoch + 2, spec: SMALL }));
      await daemon.ended();
      for (const crashAt of [
        'wake:identified',
        'wake:secret-promoted',
        'wake:running-recorded',
      ] satisfies CrashPoint[]) {
        // Recovery follows the daemon's start: the crash may come before or after `start`.
        await daemon.start({ crashAt });
        assert.equal(await daemon.ended(), 'SIGKILL', crashAt);
      }
      assert.equal(await daemon.start(), true);
      assert.equal((await view())?.status, 'running');
      await hasProcess();
      await destroyed(epoch + 3);
      assert.equal(await daemon.end('SIGTERM'), 0);
    });

    it('repeated during recovery finishes in the end', async () => {
      epoch += 10;
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
      for (const crashAt of later) assert.equal(await daemon.start({ crashAt }), false, `${crashAt} was not reached`);

      assert.equal(await daemon.start(), true);
      assert.equal((await view())?.status, 'destroyed');
      await destroyed(epoch + 1);
      assert.equal(await daemon.end('SIGTERM'), 0);
    });

    it('leaves VMs that the next daemon adopts, files included', async () => {
      epoch += 10;
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

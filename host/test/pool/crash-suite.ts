// Kills the real daemon at every durable step of its pool, and of a create that takes a VM from it.
// Checks the state that the next daemon reaches: each VM has one owner or is gone. Parameters: the
// driver, and the view of that driver's VMs.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { hostInfo } from '@berth/protocol/calls/vms.ts';
import { vmView } from '@berth/protocol/host.ts';
import { CRASH_POINTS } from '../../src/vm/crash-point.ts';
import { pointsOf } from '../../../os/test/crash-points.ts';
import { DaemonFixture } from '../daemon/daemon-process.ts';
import { SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';

const A = vmIdOf('a');
const EXEC_SECONDS = 30;
const FILL_DEADLINE_MS = 240_000;
const POLL_MS = 50;

const MAKE_POINTS = [
  'pool:folders-made',
  'pool:driver-state-saved',
  'pool:driver-state-saved#2',
  'pool:restored',
  'pool:warm',
];
const CLAIM_POINTS = pointsOf(CRASH_POINTS, 'pool:claim-');
/** Steps of a create that takes a VM from the pool. */
const CREATE_POINTS = [
  'create:folders-made',
  'create:secret-written',
  'create:restored',
  'create:identified',
  'create:running-recorded',
];
const END_POINTS = ['pool:driver-done', 'pool:removed'];

interface CrashSubject {
  /** Selects crash points; default: all. */
  pointsOf?: (points: readonly string[]) => readonly string[];
  /** The daemon's flags, besides its data folder and its pool. */
  flags: readonly string[];
  /** An entry for each VM of the installation that has a process. */
  machines(instanceId: string): Promise<string[]>;
  /** Other traces of VMs, one sentence each. Empty when there are no VMs and no daemon. */
  leftovers(): Promise<string[]>;
}

export function poolCrashSuite(title: string, subject: CrashSubject): void {
  const { pointsOf: selected = (points) => points } = subject;
  describe(title, () => {
    let daemon: DaemonFixture;
    before(async () => {
      daemon = await DaemonFixture.make([...subject.flags, '--pool-min', '1', '--pool-max', '1']);
    });
    after(async () => {
      const left = [...(await machines()), ...(await subject.leftovers())];
      await daemon.remove();
      assert.deepEqual(left, []);
    });

    async function machines(): Promise<string[]> {
      return subject.machines(await daemon.instanceId());
    }

    async function poolFolders(): Promise<string[]> {
      return readdir(join(daemon.root, 'host', 'pool'));
    }

    /** Starts a daemon and waits until its pool is full. */
    async function filled(crashAt?: string): Promise<void> {
      assert.equal(await daemon.start(crashAt === undefined ? {} : { crashAt }), true);
      const deadline = performance.now() + FILL_DEADLINE_MS;
      for (;;) {
        const { pool } = hostInfo.parse((await daemon.call('GET', '/host')).body);
        if (pool.ready === 1) return;

        assert.ok(performance.now() < deadline, `the pool is not full: ${daemon.log.slice(-3).join('\n')}`);
        await delay(POLL_MS);
      }
    }

    async function answers(): Promise<void> {
      const { status, body } = await daemon.call('POST', `/vms/${A}/exec`, {
        command: 'echo here',
        timeoutSeconds: EXEC_SECONDS,
      });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal((body as { stdout: string }).stdout, 'here\n');
    }

    /** An orderly stop leaves neither VMs nor their folders. */
    async function endsClean(): Promise<void> {
      assert.equal(await daemon.end('SIGTERM'), 0);
      assert.deepEqual([await daemon.folders(), await poolFolders(), await machines()], [[], [], []]);
    }

    for (const point of selected(MAKE_POINTS)) {
      it(`at ${point} ends the half-made VM and makes another`, async () => {
        assert.equal(await daemon.start({ crashAt: point }), true);
        assert.equal(await daemon.ended(), 'SIGKILL');
        await filled();
        assert.equal((await poolFolders()).length, 1);
        assert.equal((await machines()).length, 1);
        await endsClean();
      });
    }

    let epoch = 0;
    for (const point of selected([...CREATE_POINTS, ...CLAIM_POINTS])) {
      it(`at ${point} of a create with a pool VM leaves it to one owner or nobody`, async () => {
        epoch += 2;
        await filled(point);
        await assert.rejects(daemon.call('PUT', `/vms/${A}`, { epoch, spec: SMALL }));
        assert.equal(await daemon.ended(), 'SIGKILL');

        await filled();
        const found = await daemon.call('GET', `/vms/${A}`);
        const running = found.status === 200 && vmView.parse(found.body).status === 'running';
        assert.equal(running, point === 'create:running-recorded', JSON.stringify(found));
        assert.equal((await machines()).length, running ? 2 : 1);
        if (running) await answers();

        const made = await daemon.call('PUT', `/vms/${A}`, { epoch, spec: SMALL });
        assert.equal(made.status, 200, JSON.stringify(made.body));
        await answers();
        const gone = await daemon.call('DELETE', `/vms/${A}?epoch=${epoch + 1}`);
        assert.equal(gone.status, 200, JSON.stringify(gone.body));
        await endsClean();
      });
    }

    for (const point of selected(END_POINTS)) {
      it(`at ${point} of closing lets the next daemon end the rest`, async () => {
        await filled(point);
        assert.equal(await daemon.end('SIGTERM'), 'SIGKILL');
        await filled();
        assert.equal((await machines()).length, 1);
        await endsClean();
      });
    }

    it('leaves a VM that came from the pool to the next daemon, files and connection included', async () => {
      epoch += 2;
      await filled();
      assert.equal((await daemon.call('PUT', `/vms/${A}`, { epoch, spec: SMALL })).status, 200);
      assert.equal(await daemon.end('SIGKILL'), 'SIGKILL');
      daemon.log = [];
      await filled();
      await answers();
      assert.ok(!daemon.log.some((line) => line.includes('does not respond')), daemon.log.join('\n'));
      assert.equal((await daemon.call('DELETE', `/vms/${A}?epoch=${epoch + 1}`)).status, 200);
      await endsClean();
    });
  });
}

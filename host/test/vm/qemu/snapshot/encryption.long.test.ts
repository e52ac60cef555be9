// Encryption of disks and snapshots, with real VMs: files of a sleeping VM are searched for the
// text that its guest wrote. Needs root, the image and the template.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { hostInfo } from '@berth/protocol/calls/vms.ts';
import { vmView, type VmView } from '@berth/protocol/host.ts';
import { nullOn } from '@berth/os/errors.ts';
import { readConfig } from '../../../../src/config.ts';
import { DaemonFixture } from '../../../daemon/daemon-process.ts';
import { slotLeftovers, slotProcesses } from '../../../network/slots/slot-leftovers.ts';
import { SMALL, vmIdOf } from '../../lifecycle/lifecycle-fixture.ts';
import { enterPrivateHost } from '../../private-host.ts';

enterPrivateHost();

const A = vmIdOf('a');
const DATA_KEY = randomBytes(32).toString('base64url');
const OTHER_KEY = randomBytes(32).toString('base64url');
const { cacheFolder } = readConfig([], process.env);
const EXEC_SECONDS = 60;
const LOOK_EVERY_MS = 100;

/** Empty for an exited process. */
const textOf = (path: string): string => nullOn(['ENOENT', 'ESRCH'], () => readFileSync(path, 'latin1')) ?? '';

const LARGER = { vcpu: 1, memoryMib: 2_048, diskGib: 12 };

for (const [encrypt, poolMax] of [
  ['0', '0'],
  ['1', '0'],
  ['1', '1'],
] as const) {
  const pool = poolMax === '0' ? '' : ' and a pool';
  describe(`a sleeping VM, with BERTH_ENCRYPT_DISKS=${encrypt}${pool},`, () => {
    let daemon: DaemonFixture;
    let epoch = 1;
    before(async () => {
      const flags = ['--driver', 'qemu', '--cache-dir', cacheFolder, '--encrypt-disks', encrypt];
      daemon = await DaemonFixture.make([...flags, '--pool-min', poolMax, '--pool-max', poolMax]);
      await daemon.start();
      if (poolMax !== '0') while ((await ready()) === 0) await delay(LOOK_EVERY_MS);
    });
    afterEach(async () => {
      await succeed('DELETE', `/vms/${A}?epoch=${(epoch += 1)}`);
    });
    after(async () => {
      await daemon.end('SIGTERM');
      await daemon.remove();
      assert.deepEqual(slotLeftovers(), []);
    });

    async function ready(): Promise<number> {
      return hostInfo.parse((await daemon.call('GET', '/host')).body).pool.ready;
    }

    async function succeed(method: string, path: string, body?: object): Promise<unknown> {
      const answer = await daemon.call(method, path, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body;
    }

    async function verb(name: 'sleep' | 'wake' | 'resize', body: object): Promise<VmView> {
      return vmView.parse(await succeed('POST', `/vms/${A}/${name}`, { epoch: (epoch += 1), ...body }));
    }

    const create = (): Promise<unknown> =>
      succeed('PUT', `/vms/${A}`, { epoch: (epoch += 1), spec: SMALL, dataKey: DATA_KEY });
    const wake = (): Promise<VmView> => verb('wake', { spec: SMALL, dataKey: DATA_KEY });

    async function outputOf(command: string): Promise<string> {
      const body = await succeed('POST', `/vms/${A}/exec`, { command, timeoutSeconds: EXEC_SECONDS });
      return (body as { stdout: string }).stdout;
    }

    /** Names of the files under the VM's folder that contain a text. */
    function filesWith(text: string): string[] {
      const entries = readdirSync(join(daemon.root, 'host'), { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile());
      return files
        .filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(text))
        .map(({ name }) => name)
        .toSorted();
    }

    /** Two markers, in halves: the commands themselves must not contain them. */
    async function leaveMarkers(): Promise<[disk: string, memory: string]> {
      const [disk, memory] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')];
      const printed = (marker: string): string => `printf %s%s ${marker.slice(0, 12)} ${marker.slice(12)}`;
      await outputOf(`${printed(disk)} > /code/marker; sync`);
      await outputOf(`${printed(memory)} > /dev/shm/marker`);
      return [disk, memory];
    }

    it(`${encrypt === '1' ? 'has no file with' : 'has files with'} the contents of its disk and memory`, async () => {
      await create();
      const [disk, memory] = await leaveMarkers();
      await verb('sleep', {});
      const plain = encrypt === '0';
      assert.equal(filesWith(disk).includes('disk.qcow2'), plain);
      assert.deepEqual(filesWith(memory), plain ? ['memory'] : []);
      if (!plain) assert.deepEqual(filesWith(disk), []);

      assert.equal((await wake()).woke?.from, 'snapshot');
      assert.equal(await outputOf('cat /code/marker /dev/shm/marker'), `${disk}${memory}`);
      if (!plain) assert.deepEqual([filesWith(disk), filesWith(memory), filesWith(DATA_KEY)], [[], [], []]);
    });

    if (encrypt === '0' || poolMax !== '0') return;

    it('leaves its passphrase and data key in no file, command line or environment', async () => {
      await create();
      const [process] = slotProcesses();
      const passphrase = readFileSync(`/proc/${/\d+/.exec(process ?? '')?.[0]}/root/passphrase`, 'utf8');
      assert.match(passphrase, /^[\w-]{43}$/);
      const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
      for (const step of ['running', 'asleep']) {
        for (const secret of [passphrase, DATA_KEY]) {
          assert.deepEqual(filesWith(secret), [], step);
          for (const file of pids.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]))
            assert.equal(textOf(file).includes(secret), false, file);
          assert.equal(
            daemon.log.some((line) => line.includes(secret)),
            false,
          );
        }
        if (step === 'running') await verb('sleep', {});
      }
    });

    it('sleeps again after a wake, a resize and a new daemon', async () => {
      await create();
      const markers = await leaveMarkers();
      await verb('resize', { size: LARGER });
      await daemon.end('SIGKILL');
      await daemon.start();
      for (const _round of [1, 2]) {
        await verb('sleep', {});
        assert.deepEqual(markers.flatMap(filesWith), []);
        const woken = await verb('wake', { spec: { ...SMALL, ...LARGER }, dataKey: DATA_KEY });
        assert.deepEqual([woken.woke?.from, woken.spec?.diskGib], ['snapshot', LARGER.diskGib]);
      }
      assert.equal(await outputOf('cat /code/marker /dev/shm/marker'), markers.join(''));
    });

    it('does not wake with another data key, and wakes with its own afterwards', async () => {
      await create();
      const markers = await leaveMarkers();
      await verb('sleep', {});
      const refused = await daemon.call('POST', `/vms/${A}/wake`, {
        ...{ epoch: (epoch += 1), spec: SMALL, dataKey: OTHER_KEY },
      });
      assert.match(JSON.stringify(refused.body), /wake_failed.*data key/);
      assert.equal((await wake()).woke?.from, 'snapshot');
      assert.equal(await outputOf('cat /code/marker /dev/shm/marker'), markers.join(''));
    });

    it('boots its encrypted disk if its snapshot was altered', async () => {
      await create();
      const [disk] = await leaveMarkers();
      await verb('sleep', {});
      const memory = join(daemon.root, 'host', 'vms', A, 'snapshot', 'memory');
      const content = readFileSync(memory);
      content[4_096] = (content[4_096] ?? 0) ^ 1;
      writeFileSync(memory, content);
      assert.equal((await wake()).woke?.from, 'disk');
      assert.equal(await outputOf('cat /code/marker'), disk);
      assert.deepEqual(filesWith(disk), []);
    });
  });
}

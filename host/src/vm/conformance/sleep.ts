// Conformance: a woken VM resumes with its processes, memory and size; a VM whose sleep failed
// keeps running; a VM with an unusable snapshot still has its disk.
import assert from 'node:assert/strict';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { DriverError, SnapshotUnusable, type DriverCapabilities, type DriverState, type VmSize } from '../driver.ts';
import { isSame, killProcess } from '@berth/os/process-identity.ts';
import { outputOf, snapshotFolderOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

const ROUNDS = 3;
const EXIT_DEADLINE_MS = 20_000;
const SLOW_DISK_MS = 3_000;
/** Drivers wait less, and report what the VM still has. */
const DETACH_DEADLINE_MS = 120_000;

/** A counting process and a large file in memory; `STATE` checks what survives. */
const BUSY = [
  'mkdir -p /tmp/sleep-test',
  'head -c 20000000 /dev/urandom >/dev/shm/sleep-test 2>/dev/null ||',
  '  head -c 20000000 /dev/urandom >/tmp/sleep-test/memory',
  'sha256sum /dev/shm/sleep-test /tmp/sleep-test/memory 2>/dev/null >/tmp/sleep-test/sums',
  '(exec setsid sh -c "n=0; while :; do n=\\$((n+1)); echo \\$n >/tmp/sleep-test/.n',
  '  mv /tmp/sleep-test/.n /tmp/sleep-test/n; sleep 0.05; done" >/dev/null 2>&1 & echo $! >/tmp/sleep-test/pid)',
  'until [ -s /tmp/sleep-test/n ]; do sleep 0.05; done',
].join('\n');
const COUNT = 'cat /tmp/sleep-test/n';

class Refused extends Error {}

export function sleepConforms(
  current: () => Subject,
  { spec, biggerSpecs }: ConformanceOptions,
  capabilities: DriverCapabilities,
): void {
  describe('a VM that sleeps', () => {
    const makeBusy = async (size = spec): Promise<SubjectVm> => {
      const vm = await current().create(size);
      await outputOf(vm.client, BUSY);
      return vm;
    };

    it(`keeps its processes and memory over ${ROUNDS} sleeps, also under another driver instance`, async () => {
      const vm = await makeBusy();
      for (let round = 0; round < ROUNDS; round += 1) {
        const { process } = vm.running;
        const before = Number(await outputOf(vm.client, COUNT));
        await current().sleep(vm, spec);
        assert.equal(await current().driver.hasSnapshot(snapshotFolderOf(vm)), true);
        if (capabilities.snapshots) assert.equal(await isSame(process), false, 'nothing of it runs');

        await current().replaceDriver();
        assert.deepEqual(pick(await current().wake(vm)), pick(spec));
        await assertStillRunning(vm, before);
      }
      await current().destroy(vm);
    });

    it('can be put to sleep again, by state saved before or after the first sleep', async () => {
      const vm = await makeBusy();
      const before = Number(await outputOf(vm.client, COUNT));
      const awake = current().existing(vm);
      await current().sleep(vm, spec);
      const snapshotFolder = snapshotFolderOf(vm);
      const asleep = vm.saved.at(-1);
      assert.deepEqual(await current().driver.sleep({ ...awake, snapshotFolder, size: spec }), asleep);
      assert.deepEqual(await current().driver.sleep({ ...current().existing(vm), snapshotFolder, size: spec }), asleep);
      await current().wake(vm);
      await assertStillRunning(vm, before);
      await current().destroy(vm);
    });

    it('runs on after a failed capture and leaves no snapshot files', async () => {
      const vm = await makeBusy();
      const { driver } = current();
      const snapshotFolder = join(snapshotFolderOf(vm), 'that-is-not-there');
      const before = Number(await outputOf(vm.client, COUNT));
      await assert.rejects(driver.sleep({ ...current().existing(vm), snapshotFolder, size: spec }), DriverError);
      await assertStillRunning(vm, before);
      await assert.rejects(current().sleep(vm, spec, AbortSignal.abort(new Refused())), Refused);
      assert.deepEqual(await readdir(snapshotFolderOf(vm)), []);
      await assertStillRunning(vm, before);
      await current().sleep(vm, spec);
      await current().wake(vm);
      await assertStillRunning(vm, before);
      await current().destroy(vm);
    });

    it('stays asleep when its wake stops before it ran', async () => {
      const vm = await makeBusy();
      const before = Number(await outputOf(vm.client, COUNT));
      await current().sleep(vm, spec);
      const asleep = vm.saved.at(-1) ?? {};
      const beforeContinue = async (): Promise<void> => {
        throw new Refused('not now');
      };
      await assert.rejects(current().wake(vm, { beforeContinue }), /not now/);
      if (capabilities.snapshots) await current().driver.destroy(vm.folder, vm.saved.at(-1) ?? null);

      vm.saved.push(asleep);
      await current().wake(vm);
      await assertStillRunning(vm, before);
      await current().destroy(vm);
    });

    if (capabilities.snapshots) {
      it('saves every record before its snapshot is spent, and before an aborted wake returns', async () => {
        const vm = await makeBusy();
        const before = Number(await outputOf(vm.client, COUNT));
        await current().sleep(vm, spec);
        const asleep = vm.saved.at(-1) ?? {};
        let saving = 0;
        const late = Promise.withResolvers<void>();
        const slowly = async (state: DriverState): Promise<void> => {
          saving += 1;
          vm.saved.push(state);
          // Block until the driver would be too late.
          await Promise.race([late.promise, delay(SLOW_DISK_MS)]);
          saving -= 1;
        };

        const stop = new AbortController();
        const stopped = (state: DriverState): Promise<void> => {
          if (state['process'] !== undefined) stop.abort(new Refused('not now'));
          return slowly(state);
        };
        await assert.rejects(current().wake(vm, { saveState: stopped, signal: stop.signal }), Refused);
        assert.equal(saving, 0, 'the record is the caller’s again');
        await current().driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
        vm.saved.push(asleep);

        const beforeContinue = async (): Promise<void> => {
          late.resolve();
          assert.equal(saving, 0, 'the snapshot would be spent for a machine that is in no record');
        };
        await current().wake(vm, { saveState: slowly, beforeContinue });
        await assertStillRunning(vm, before);
        await current().destroy(vm);
      });
    }

    it('can be destroyed', async () => {
      const vm = await makeBusy();
      await current().sleep(vm, spec);
      await current().destroy(vm);
      assert.deepEqual(await current().driver.reapOrphans(new Set()), []);
    });

    it('cannot sleep once its process has ended', async () => {
      const vm = await makeBusy();
      await killProcess(vm.running.process, 'SIGKILL');
      await current().driver.exited(vm.running.process, AbortSignal.timeout(EXIT_DEADLINE_MS));
      await assert.rejects(current().sleep(vm, spec), DriverError);
      assert.equal(await current().driver.hasSnapshot(snapshotFolderOf(vm)), false);
      await current().destroy(vm);
    });

    if (capabilities.snapshots) {
      it('boots its disk when any file of its snapshot was changed', async () => {
        const vm = await makeBusy();
        await outputOf(vm.client, 'echo kept >/code/note && sync');
        await current().sleep(vm, spec);
        const folder = snapshotFolderOf(vm);
        const asleep = vm.saved.at(-1) ?? {};
        for (const name of await readdir(folder)) {
          const undo = await flipByte(join(folder, name));
          await assert.rejects(current().wake(vm), SnapshotUnusable, name);
          await current().driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
          vm.saved.push(asleep);
          await undo();
        }
        await rm(folder, { recursive: true });
        await assert.rejects(current().wake(vm), SnapshotUnusable);
        const size = await current().boot(vm);
        assert.deepEqual([size.memoryMib, size.diskGib], [spec.memoryMib, spec.diskGib]);
        assert.equal(await outputOf(vm.client, 'cat /code/note'), 'kept');
        assert.equal(await outputOf(vm.client, 'hostname'), spec.hostname);
        // A booted VM can sleep.
        await current().sleep(vm, size);
        await current().wake(vm);
        assert.equal(await outputOf(vm.client, 'cat /code/note'), 'kept');
        await current().destroy(vm);
      });
    }

    for (const size of biggerSpecs) {
      it(`has the same ${size.vcpu} vCPUs, ${size.memoryMib} MiB and ${size.diskGib} GiB again`, async () => {
        const vm = await makeBusy(size);
        const before = Number(await outputOf(vm.client, COUNT));
        await current().sleep(vm, size);
        assert.deepEqual(pick(await current().wake(vm)), pick(size));
        await assertStillRunning(vm, before);
        assert.equal(Number(await outputOf(vm.client, 'nproc')), size.vcpu);
        await current().destroy(vm);
      });
    }

    if (capabilities.hotplug) {
      it('keeps a size it got while running, and gives memory and vCPUs back after its wake', async () => {
        const vm = await makeBusy();
        const { driver } = current();
        const before = Number(await outputOf(vm.client, COUNT));
        const larger: VmSize = { vcpu: 2, memoryMib: spec.memoryMib + 1_024, diskGib: spec.diskGib + 5 };
        assert.deepEqual(await driver.resize(current().existing(vm), spec, larger), larger);
        await current().sleep(vm, larger);
        assert.deepEqual(await current().wake(vm), larger);
        await assertStillRunning(vm, before);
        const back = { ...pick(spec), diskGib: larger.diskGib };
        const late = AbortSignal.timeout(DETACH_DEADLINE_MS);
        let given = await driver.resize(current().existing(vm), larger, back);
        while (given.vcpu === larger.vcpu && !late.aborted)
          given = await driver.resize(current().existing(vm), given, back);

        assert.ok(
          given.vcpu >= back.vcpu && given.memoryMib >= back.memoryMib && given.diskGib === back.diskGib,
          JSON.stringify(given),
        );
        assert.ok(given.vcpu < larger.vcpu, 'a guest that has nothing to do lets go of a vCPU');
        await assertStillRunning(vm, before);
        await current().destroy(vm);
      });

      it('runs on unchanged when an impossible size is refused', async () => {
        const vm = await current().create(spec);
        const { driver } = current();
        for (const wrong of [
          { vcpu: 1_000 },
          { memoryMib: spec.memoryMib + 1 },
          { memoryMib: 2 ** 30 },
          { diskGib: 2 ** 30 },
        ])
          await assert.rejects(driver.resize(current().existing(vm), spec, { ...pick(spec), ...wrong }), DriverError);

        assert.deepEqual(await driver.resize(current().existing(vm), spec, spec), pick(spec));
        await current().destroy(vm);
      });
    }

    it('reports its resource use while it runs', async () => {
      const vm = await makeBusy();
      const { driver } = current();
      const figures = await driver.figures(vm.folder, vm.saved.at(-1) ?? {});
      for (const [name, value] of Object.entries(figures))
        assert.ok(Number.isFinite(value) && value >= 0, `${name}: ${value}`);

      assert.ok(figures.residentMib >= figures.unsharedMib && figures.unsharedMib > 1, JSON.stringify(figures));
      const cpuMs = driver.cpuMs(vm.running.process);
      assert.ok(cpuMs !== null && cpuMs >= figures.cpuMs && cpuMs > 0, `${cpuMs}`);
      if (capabilities.network)
        assert.ok(figures.networkInBytes > 0 && figures.networkOutBytes > 0, JSON.stringify(figures));

      await current().destroy(vm);
      const late = AbortSignal.timeout(EXIT_DEADLINE_MS);
      while (driver.cpuMs(vm.running.process) !== null) {
        // The kernel lists an exited process until its parent reaps it.
        await delay(10, undefined, { signal: late });
      }
      await assert.rejects(driver.figures(vm.folder, vm.saved.at(-1) ?? {}));
    });
  });
}

/** Asserts that the counter still runs and the memory is unchanged. */
async function assertStillRunning(vm: SubjectVm, before: number): Promise<void> {
  await outputOf(vm.client, 'kill -0 "$(cat /tmp/sleep-test/pid)" && sha256sum --quiet -c /tmp/sleep-test/sums');
  const after = Number(await outputOf(vm.client, COUNT));
  assert.ok(after >= before, `it counted to ${before}, and is at ${after}`);
  await outputOf(vm.client, `until [ "$(${COUNT})" -gt ${after} ]; do sleep 0.05; done`);
}

function pick({ vcpu, memoryMib, diskGib }: VmSize): VmSize {
  return { vcpu, memoryMib, diskGib };
}

/** Flips a byte in the middle of the file; resolves with the undo function. */
async function flipByte(path: string): Promise<() => Promise<void>> {
  const flip = async (): Promise<void> => {
    const file = await open(path, 'r+');
    try {
      const at = Math.floor((await file.stat()).size / 2);
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, at);
      byte[0] = (byte[0] ?? 0) ^ 1;
      await file.write(byte, 0, 1, at);
    } finally {
      await file.close();
    }
  };
  await flip();
  return flip;
}

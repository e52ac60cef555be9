// Sleeps and ends of real VMs that are specific to QEMU: a full disk, a killed QEMU, a guest that
// shuts down, a VM left paused. Needs root, the image and the template.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { DIRECT_GUESTS } from '../../../../src/guest/client.ts';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, test, type TestContext } from 'node:test';
import { readConfig } from '../../../../src/config.ts';
import { exec, outputOf, snapshotFolderOf, Subject, type SubjectVm } from '../../../../src/vm/conformance/subject.ts';
import { DriverError, SnapshotUnusable, type DriverState, type VmEnd } from '../../../../src/vm/driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { newestImageFolder } from '../../../../src/make-driver.ts';
import { endProcess, killProcess } from '@berth/os/process-identity.ts';
import { createQemuDriver } from '../../../../src/vm/qemu/driver.ts';
import { QemuEnded } from '../../../../src/vm/qemu/process/launch.ts';
import { openQmp } from '../../../../src/vm/qemu/machine/qmp.ts';
import { digest, readManifest, SNAPSHOT_FILES, writeManifest } from '../../../../src/vm/qemu/snapshot/manifest.ts';
import { Pages } from '../../../../src/vm/qemu/snapshot/pages.ts';
import { stateOf } from '../../../../src/vm/qemu/start/state.ts';
import { z } from 'zod';
import { enterPrivateHost } from '../../private-host.ts';

enterPrivateHost();

const DEADLINE_MS = 240_000;
/** Time for a guest to fill its memory under emulation. */
const FILL_SECONDS = 300;
const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

let subject: Subject;
before(async () => {
  subject = await Subject.prepare(() =>
    createQemuDriver({
      cacheFolder,
      imageFolder: image,
      guests: DIRECT_GUESTS,
      network: { instanceId: 'sleeping', dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1 },
      log: () => {},
    }),
  );
});
after(async () => {
  await subject.close();
});

/**
 * Crashes a QEMU by overwriting its code with trapping instructions (SIGTRAP): as pid 1 of its
 * namespace it ignores every other signal but SIGKILL.
 */
async function fallOver(pid: number): Promise<void> {
  const late = AbortSignal.timeout(DEADLINE_MS);
  const codeOf = (): [string, string] | undefined => {
    const line = /^([0-9a-f]+)-([0-9a-f]+) r-x.* \/\S*qemu-system-\S+$/m.exec(
      readFileSync(`/proc/${pid}/maps`, 'latin1'),
    );
    return line === null ? undefined : [line[1] ?? '', line[2] ?? ''];
  };
  let code = codeOf();
  // Until its exec, the process runs the jail's program.
  while (!late.aborted && code === undefined) {
    await new Promise((resolve) => setImmediate(resolve));
    code = codeOf();
  }
  const [begins, ends] = (code ?? ['0', '0']).map((address) => Number.parseInt(address, 16)) as [number, number];
  const memory = await open(`/proc/${pid}/mem`, 'r+');
  await memory.write(Buffer.alloc(ends - begins, 0xcc), 0, undefined, begins);
  await memory.close();
}

async function vmFor(context: TestContext): Promise<SubjectVm> {
  const vm = await subject.create(SPEC);
  context.after(() => subject.destroy(vm));
  return vm;
}

test('a VM whose snapshot does not fit on the disk keeps running, and sleeps once there is room', async (context) => {
  const vm = await vmFor(context);
  await outputOf(
    vm.client,
    'head -c 100000000 /dev/urandom >/dev/shm/large; sha256sum </dev/shm/large >/tmp/sum',
    FILL_SECONDS,
  );
  const small = mkdtempSync(join(tmpdir(), 'berth-small-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', small]);
  try {
    const snapshotFolder = join(small, 'snapshot');
    mkdirSync(snapshotFolder);
    await assert.rejects(
      subject.driver.sleep({ ...subject.existing(vm), snapshotFolder, size: SPEC }),
      (error) => error instanceof DriverError && /no space left|ENOSPC/i.test(error.message),
    );
    assert.deepEqual(readdirSync(snapshotFolder), []);
    assert.deepEqual(readdirSync(vm.folder).sort(), ['disk.qcow2', 'qmp']);
    assert.equal(statSync(vm.folder).mode & 0o777, 0o700);
  } finally {
    execFileSync('umount', [small]);
    rmdirSync(small);
  }
  const check = 'sha256sum </dev/shm/large | cmp - /tmp/sum && echo same';
  assert.equal(await outputOf(vm.client, check, FILL_SECONDS), 'same');
  await subject.sleep(vm, SPEC);
  assert.equal(await outputOf((await subject.wake(vm), vm.client), check, FILL_SECONDS), 'same');
});

test('a QEMU that crashes while booting a disk is restarted, at most three times', async (context) => {
  const vm = await vmFor(context);
  await outputOf(vm.client, 'echo kept >/code/note; sync');
  await subject.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);

  const boot = async (falls: number): Promise<{ started: number; error: unknown }> => {
    let started = 0;
    const error = await subject
      .boot(vm, async (state) => {
        vm.saved.push(state);
        const { process } = stateOf(state);
        if (process === undefined) return;
        started += 1;
        if (started <= falls) await fallOver(process.pid);
      })
      .then(
        () => null,
        (thrown: unknown) => thrown,
      );
    return { started, error };
  };
  const failed = await boot(3);
  assert.match(String(failed.error), /QEMU exited with exit code 133/);
  assert.equal(failed.started, 3);
  let booted = await boot(2);
  // The fault that the restarts are for occurs here too.
  while (/iotlb_to_section/.test(String(booted.error))) booted = await boot(2);
  assert.deepEqual(booted, { started: 3, error: null });
  assert.equal(await outputOf(vm.client, 'cat /code/note'), 'kept');
});

test('a QEMU killed during a capture leaves no snapshot, and its disk boots', async (context) => {
  const vm = await vmFor(context);
  await outputOf(vm.client, 'echo kept >/code/note; sync; yes | head -c 300000000 >/dev/shm/large', FILL_SECONDS);
  const sleeping = subject.sleep(vm, SPEC);
  const outcome = assert.rejects(sleeping, DriverError);
  const memory = join(snapshotFolderOf(vm), 'memory');
  const late = AbortSignal.timeout(DEADLINE_MS);
  while (!late.aborted && (statSync(memory, { throwIfNoEntry: false })?.size ?? 0) === 0)
    await new Promise((resolve) => setImmediate(resolve));

  await killProcess(vm.running.process, 'SIGKILL');
  await outcome;
  assert.equal(await subject.driver.hasSnapshot(snapshotFolderOf(vm)), false);
  await subject.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
  await subject.boot(vm);
  assert.equal(await outputOf(vm.client, 'cat /code/note'), 'kept');
});

test('a VM left paused in the middle of its sleep resumes under the next daemon', async (context) => {
  const vm = await vmFor(context);
  await subject.driver.close();
  const qmp = await openQmp(join(vm.folder, 'qmp'), () => {}, { signal: AbortSignal.timeout(DEADLINE_MS) });
  await qmp.command('stop', undefined, z.unknown(), { signal: AbortSignal.timeout(DEADLINE_MS) });
  qmp.close();
  await subject.replaceDriver();
  assert.ok(await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS));
  assert.equal(await outputOf(vm.client, 'echo alive'), 'alive');
});

describe('a VM woken from its snapshot', () => {
  const NUMBER = 'pgrep -x sleep >/dev/null && cat /dev/shm/number';

  interface Sleeper {
    vm: SubjectVm;
    /** Driver state saved by its sleep. */
    asleep: DriverState;
    /** In its memory, on no disk. */
    number: string;
  }

  async function sleeper(context: TestContext): Promise<Sleeper> {
    const vm = await vmFor(context);
    await outputOf(
      vm.client,
      'head -c 8 /dev/urandom | sha256sum >/dev/shm/number; (exec setsid sleep 1000 >/dev/null 2>&1 &)',
    );
    const number = await outputOf(vm.client, NUMBER);
    await subject.sleep(vm, SPEC);
    return { vm, asleep: vm.saved.at(-1) ?? {}, number };
  }

  /** Clears a failed wake, as the daemon does; the next finds the VM as it fell asleep. */
  async function resumesAtNextDaemon({ vm, asleep, number }: Sleeper): Promise<void> {
    await subject.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
    vm.saved.push(asleep);
    await subject.wake(vm);
    assert.equal(await outputOf(vm.client, NUMBER), number);
  }

  /** Pauses a QEMU that has its pages and is about to load its devices; then calls `happens`. */
  function whileDevicesLoad(context: TestContext, happens: (process: ProcessIdentity) => Promise<void>): void {
    const patch = Reflect.get(Pages.prototype, 'patch');
    context.mock.method(Pages.prototype, 'patch', async function (this: Pages, ...given: Parameters<Pages['patch']>) {
      await Reflect.apply(patch, this, given);
      const { process } = await given[1];
      await killProcess(process, 'SIGSTOP');
      setImmediate(() => void happens(process));
    });
  }

  async function assertStillRunning(process: ProcessIdentity): Promise<void> {
    await killProcess(process, 'SIGCONT');
  }

  for (const { signal, exitCode } of [
    { signal: 'SIGKILL', exitCode: 137 },
    { signal: 'SIGTERM', exitCode: 0 },
  ] as const) {
    it(`keeps its snapshot when QEMU gets ${signal} in the device load, resumes at the next wake`, async (context) => {
      const machine = await sleeper(context);
      whileDevicesLoad(context, async (process) => {
        await killProcess(process, signal);
        await assertStillRunning(process);
      });
      await assert.rejects(subject.wake(machine.vm), (error) => {
        assert.ok(error instanceof QemuEnded, String(error));
        assert.equal(error.exitCode, exitCode);
        return true;
      });
      context.mock.restoreAll();
      await resumesAtNextDaemon(machine);
    });
  }

  it('never ran when QEMU is killed while the snapshot is being spent, resumes at the next wake', async (context) => {
    const machine = await sleeper(context);
    const beforeContinue = async (): Promise<void> => {
      const { process } = stateOf(machine.vm.saved.at(-1) ?? {});
      assert.ok(process);
      await endProcess(process);
      // The process takes its end of the connection with it: the next full turn of the event loop
      // reads that, the following one closes this end.
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    };
    await assert.rejects(subject.wake(machine.vm, { beforeContinue }), {
      name: 'NeverContinued',
      message: /QEMU exited with exit code 137/,
    });
    await resumesAtNextDaemon(machine);
  });

  it('never ran when its wake is aborted while the snapshot is being spent, resumes at the next', async (context) => {
    const machine = await sleeper(context);
    const late = new AbortController();
    const beforeContinue = async (): Promise<void> => late.abort(new Error('too late'));
    const waking = subject.wake(machine.vm, { beforeContinue, signal: late.signal });
    await assert.rejects(waking, { name: 'NeverContinued', message: 'too late' });
    await resumesAtNextDaemon(machine);
  });

  it('has an unusable snapshot when QEMU crashes during the device load', async (context) => {
    const { vm } = await sleeper(context);
    whileDevicesLoad(context, async (process) => {
      await fallOver(process.pid);
      await assertStillRunning(process);
    });
    await assert.rejects(
      subject.wake(vm),
      (error) => error instanceof SnapshotUnusable && /exit code 133/.test(error.message),
    );
  });

  it('has an unusable snapshot when QEMU refuses its devices', async (context) => {
    const { vm } = await sleeper(context);
    const folder = snapshotFolderOf(vm);
    const path = join(folder, SNAPSHOT_FILES.devices);
    const cut = readFileSync(path).subarray(0, -1_000);
    writeFileSync(path, cut);
    const manifest = await readManifest(folder);
    await writeManifest(folder, { ...manifest, devicesFile: { sizeBytes: cut.length, sha256: digest(cut) } });
    await assert.rejects(subject.wake(vm), SnapshotUnusable);
  });
});

async function endOf(vm: SubjectVm, command: string): Promise<VmEnd> {
  const ended = subject.driver.exited(vm.running.process, AbortSignal.timeout(DEADLINE_MS));
  // The response is lost with the VM.
  exec(vm.client, command, 5).catch(() => undefined);
  return ended;
}

for (const [what, key, code, reason] of [
  ['panics', 'c', 'guest_panic', /panicked: sysrq triggered crash/],
  ['shuts itself down', 'o', 'guest_shutdown', /shut itself down/],
  ['reboots itself', 'b', 'guest_reboot', /guest rebooted, which ends the VM/],
] as const) {
  test(`a guest that ${what} ends its VM, reported as ${code}`, async (context) => {
    const vm = await vmFor(context);
    const end = await endOf(vm, `sudo sh -c 'echo ${key} >/proc/sysrq-trigger'`);
    assert.equal(end.code, code);
    assert.match(end.reason, reason);
    assert.ok(Date.now() - end.lastAliveUnixMs < DEADLINE_MS);
  });
}

test('a disk that grows while its VM runs can be filled to its new size, and its file no further', async (context) => {
  const vm = await vmFor(context);
  const to = { vcpu: 1, memoryMib: 1_024, diskGib: 14 };
  assert.deepEqual(await subject.driver.resize(subject.existing(vm), SPEC, to), to);
  const limits = readFileSync(`/proc/${vm.running.process.pid}/limits`, 'latin1');
  assert.equal(Number(/^Max file size +(\d+) /m.exec(limits)?.[1]), 15 * 2 ** 30);
  assert.equal(await outputOf(vm.client, 'sudo blockdev --getsize64 /dev/vda'), String(14 * 2 ** 30));
  // A boot takes the size from the driver's own record.
  await killProcess(vm.running.process, 'SIGKILL');
  await subject.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
  assert.equal((await subject.boot(vm)).diskGib, 14);
});

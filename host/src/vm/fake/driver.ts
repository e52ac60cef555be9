// A driver without VMs: runs the real guest daemon as a local process, so that tests see a host's
// behaviour without an emulator's delays. Isolates nothing: never run untrusted code in it. Sleep
// stops the processes; the size is a note in the folder.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleGuestDaemon } from '@berth/guest/bundle.ts';
import { CONSOLE_BYTES } from '@berth/protocol/calls/vms.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { z } from 'zod';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { nullIf } from '@berth/os/errors.ts';
import {
  DriverError,
  SnapshotUnusable,
  type BootVm,
  type ConsoleOutput,
  type CreateVm,
  type DriverState,
  type ExistingVm,
  type RunningVm,
  type SleepVm,
  type VmDriver,
  type VmEnd,
  type VmFigures,
  type VmSize,
  type WakeVm,
  type WokenVm,
} from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { boundedMessageOf } from '../host-error.ts';
import { endProcess, isSame, processExited } from '@berth/os/process-identity.ts';
import { findMarked, writeMark, type Mark } from './find.ts';
import { makeJail, type FakeAgents } from './jail.ts';
import { freeze, memoryOf, processorMs, resumeProcesses } from './members.ts';
import { fakeModels, startGuestDaemon } from './start.ts';

const PROBE_DEADLINE_MS = 5_000;
const SIZE_FILE = 'size.json';
/** JSON file that stands for the snapshot, in the snapshot folder. */
export const SNAPSHOT_FILE = 'machine.json';
/** Size at boot of the disk, as with the real driver. */
const BOOT_SIZE = { vcpu: 1, memoryMib: 1_024 };

const vmSize = z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() });

/** On-disk state of a running or stopped VM. */
const runningState = z.object({
  process: z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() }),
  guest: z.object({ address: z.string(), port: z.int() }),
});
const snapshot = runningState.extend({ size: vmSize });

const run = promisify(execFile);

export class FakeDriver implements VmDriver {
  readonly name = 'fake';
  readonly accelerator = 'none';
  readonly capabilities = { isolates: false, network: false, hotplug: false, snapshots: false };
  readonly #instanceId: string;
  readonly #agents: FakeAgents | null;
  #guestDaemon: Uint8Array | undefined;

  /** `instanceId` identifies the installation among several on one host. */
  constructor(instanceId: string, agents: FakeAgents | null = null) {
    this.#instanceId = instanceId;
    this.#agents = agents;
  }

  async prepare(): Promise<void> {
    for (const program of ['bwrap', 'setpriv']) {
      await run(program, ['--version'], { timeout: PROBE_DEADLINE_MS }).catch((error: unknown) => {
        throw new DriverError(`the fake driver needs the program ${program}: ${boundedMessageOf(error)}`, {
          cause: error,
        });
      });
    }
    this.#guestDaemon = (await bundleGuestDaemon()).code;
  }

  async create(vm: CreateVm): Promise<RunningVm> {
    return this.#start(vm, vm.spec);
  }

  async recover(_folder: string, state: DriverState): Promise<RunningVm | null> {
    const parsed = runningState.safeParse(state);
    if (!parsed.success || !(await isSame(parsed.data.process))) return null;

    await resumeProcesses(parsed.data.process);
    return { ...parsed.data, models: fakeModels(parsed.data.guest.port) };
  }

  async exited(process: ProcessIdentity, signal: AbortSignal): Promise<VmEnd> {
    const lastAliveUnixMs = await processExited(process, signal);
    const reason = signal.aborted ? 'no longer watched' : `the guest daemon's process ${process.pid} has exited`;
    return { code: 'process_ended', reason, lastAliveUnixMs };
  }

  async sleep(vm: SleepVm): Promise<DriverState> {
    const { snapshotFolder, signal } = vm;
    if (await this.hasSnapshot(snapshotFolder)) return vm.state;

    const running = runningState.parse(vm.state);
    if (!(await isSame(running.process))) throw new DriverError('the process of the fake VM has exited');

    try {
      await freeze(running.process, signal);
      signal.throwIfAborted();
      const content = { ...running, size: await readSize(vm.folder) };
      await writeDurably(join(snapshotFolder, SNAPSHOT_FILE), JSON.stringify(content));
    } catch (error) {
      await resumeProcesses(running.process);
      throw signal.aborted || error instanceof DriverError
        ? error
        : new DriverError(boundedMessageOf(error), { cause: error });
    }
    return vm.state;
  }

  async hasSnapshot(snapshotFolder: string): Promise<boolean> {
    return (await readIfPresent(join(snapshotFolder, SNAPSHOT_FILE))) !== null;
  }

  /** Makes nothing new, so there is no state to save. */
  async wake(vm: WakeVm): Promise<WokenVm> {
    const found = snapshot.safeParse(parseJson((await readIfPresent(join(vm.snapshotFolder, SNAPSHOT_FILE))) ?? ''));
    if (!found.success) throw new SnapshotUnusable('the snapshot of the fake VM does not verify');

    const { process, guest, size } = found.data;
    if (!(await isSame(process))) throw new SnapshotUnusable('the processes of the fake VM no longer exist');

    vm.signal.throwIfAborted();
    await vm.beforeContinue();
    await resumeProcesses(process);
    return { process, guest, models: fakeModels(guest.port), size };
  }

  async boot(vm: BootVm): Promise<WokenVm> {
    await this.destroy(vm.folder, vm.state);
    const { diskGib } = await readSize(vm.folder);
    const size = { ...BOOT_SIZE, diskGib };
    // In memory on a real VM.
    await rm(join(vm.folder, 'run'), { recursive: true, force: true });
    return { ...(await this.#start(vm, size)), size };
  }

  async resize(vm: ExistingVm, _from: VmSize, to: VmSize): Promise<VmSize> {
    const running = runningState.parse(vm.state);
    if (!(await isSame(running.process))) throw new DriverError('the process of the fake VM has exited');

    try {
      const { diskGib } = await readSize(vm.folder);
      const size = { vcpu: to.vcpu, memoryMib: to.memoryMib, diskGib: Math.max(diskGib, to.diskGib) };
      vm.signal.throwIfAborted();
      await writeDurably(join(vm.folder, SIZE_FILE), JSON.stringify(size));
      return size;
    } catch (error) {
      throw vm.signal.aborted ? error : new DriverError(boundedMessageOf(error), { cause: error });
    }
  }

  /** The fake VM shares the host's network, which has no policy. */
  setEgress(): Promise<void> {
    return Promise.resolve();
  }

  egressDenied(): null {
    return null;
  }

  /** The file `/run/console` of the guest. */
  async readConsole(folder: string): Promise<ConsoleOutput | null> {
    const file = await open(
      join(folder, 'run', 'console'),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    ).catch(nullIf('ENOENT', 'ELOOP'));
    if (file === null) return { text: '', truncated: false };
    try {
      const { size } = await file.stat();
      const kept = Math.min(size, CONSOLE_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(kept), 0, kept, size - kept);
      return { text: buffer.toString('utf8', 0, bytesRead), truncated: size > kept };
    } finally {
      await file.close();
    }
  }

  async figures(folder: string, state: DriverState): Promise<VmFigures> {
    const { process } = runningState.parse(state);
    const [memory, disk] = await Promise.all([memoryOf(process), run('du', ['-sk', folder])]);
    const diskUsedMib = Number.parseInt(disk.stdout, 10) / 1_024;
    // The fake VM shares the host's network, which has no counters per VM.
    return { cpuMs: processorMs(process) ?? 0, ...memory, diskUsedMib, networkInBytes: 0, networkOutBytes: 0 };
  }

  cpuMs(process: ProcessIdentity): number | null {
    return processorMs(process);
  }

  async destroy(folder: string, state: DriverState | null = null): Promise<void> {
    // A pool VM was started in another folder.
    const saved = state?.['mark'];
    await endMarked((mark) => mark.folder === folder || writeMark(mark) === saved);
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    const ended = await endMarked((mark) => mark.instanceId === this.#instanceId && !known.has(mark.vmId));
    return ended.map(({ mark, process }) => `process ${process.pid} of the fake VM ${mark.vmId}`);
  }

  async close(): Promise<void> {
    this.#guestDaemon = undefined;
  }

  async #start(
    { id, folder, signal, saveState }: Omit<CreateVm, 'spec'>,
    { vcpu, memoryMib, diskGib }: VmSize,
  ): Promise<RunningVm> {
    if (this.#guestDaemon === undefined) throw new DriverError('the fake driver was not prepared');

    const mark: Mark = { instanceId: this.#instanceId, vmId: id, folder };
    signal.throwIfAborted();
    // The mark identifies all processes started from here on.
    await saveState({ mark: writeMark(mark) });
    const jail = await makeJail(folder, writeMark(mark), this.#guestDaemon, this.#agents);
    await writeDurably(join(folder, SIZE_FILE), JSON.stringify({ vcpu, memoryMib, diskGib } satisfies VmSize));
    signal.throwIfAborted();
    const running = await startGuestDaemon(jail, signal);
    const { process, guest } = running;
    await saveState({ mark: writeMark(mark), process, guest });
    return running;
  }
}

/**
 * Ends every process with a matching mark. Repeats until none is left: the outer process may be
 * starting the inner one.
 */
async function endMarked(wanted: (mark: Mark) => boolean): ReturnType<typeof findMarked> {
  const ended: Awaited<ReturnType<typeof findMarked>> = [];
  for (;;) {
    const found = await findMarked(wanted);
    if (found.length === 0) return ended;

    await Promise.all(found.map(({ process }) => endProcess(process)));
    ended.push(...found);
  }
}

async function readSize(folder: string): Promise<VmSize> {
  return vmSize.parse(JSON.parse(await readFile(join(folder, SIZE_FILE), 'utf8')));
}

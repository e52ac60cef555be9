// A lifecycle over a scripted driver and a real folder, for tests; `restart` is the view of a new
// daemon after `kill -9`.
import assert from 'node:assert/strict';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { VmSpec, VmStatus } from '@berth/protocol/host.ts';
import { exec, type GuestExecRequest } from '@berth/protocol/calls/exec.ts';
import { pino } from 'pino';
import type { AdmissionPolicy, HostFigures } from '../../../src/vm/admission.ts';
import { DataKeys } from '../../../src/vm/directory/data-keys.ts';
import { FenceDirectory } from '../../../src/vm/directory/fence.ts';
import { VmDirectory, type VmRecord } from '../../../src/vm/directory/record.ts';
import { GuestStreams } from '../../../src/guest/guest-streams.ts';
import { VmLifecycle } from '../../../src/vm/lifecycle/lifecycle.ts';
import type { Deadlines, ModelGate } from '../../../src/vm/owned/owned-vm.ts';
import { ScriptedDriver, ScriptedHost } from '../scripted-driver.ts';
import type { ScriptedGuest } from '../scripted-guest.ts';

export const SMALL: VmSpec = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
export const POLICY: AdmissionPolicy = {
  cpuOvercommit: 4,
  memoryOvercommit: 1,
  memoryReserveMib: 1_024,
  vmOverheadMib: 0,
  diskOvercommit: 1,
  diskReserveGib: 0,
};
/** Timeout for expected events; tests of timeouts set their own. */
const DEADLINE_MS = 240_000;
const LARGEST = { vcpu: 8, memoryMib: 65_536, diskGib: 2_048 };
export const ROOMY: HostFigures = {
  cores: 16,
  memTotalMib: 65_536,
  memAvailableMib: 60_000,
  diskTotalGib: 1_000,
  diskFreeGib: 900,
  diskOthersGib: 0,
};

export function vmIdOf(letter: string): string {
  return `sbx_${letter.repeat(24)}`;
}

export class LifecycleFixture {
  readonly root: string;
  readonly machine = new ScriptedHost();
  figures: HostFigures = ROOMY;
  /** Replaces the figures of the disk. */
  readDisk: (vmFolders: string[]) => Partial<HostFigures> = () => ({});
  deadlines: Deadlines = {
    createMs: DEADLINE_MS,
    sleepMs: DEADLINE_MS,
    wakeMs: DEADLINE_MS,
    resizeMs: DEADLINE_MS,
    // Guests that do not respond within this time are adopted anyway.
    adoptMs: 2_000,
  };
  encryptDisks = false;
  /** The model gateway; absent by default. */
  models: ModelGate | undefined;
  streamLimits = { perVm: 4, perHost: 8 };
  driver!: ScriptedDriver;
  directory!: VmDirectory;
  fences!: FenceDirectory;
  lifecycle!: VmLifecycle;

  private constructor(root: string) {
    this.root = root;
  }

  static async start(deadlines: Partial<Deadlines> = {}, parent = tmpdir()): Promise<LifecycleFixture> {
    const fixture = new LifecycleFixture(await mkdtemp(join(parent, 'berth-lifecycle-')));
    Object.assign(fixture.deadlines, deadlines);
    await fixture.restart();
    return fixture;
  }

  /** Starts a new daemon over the same disk and VMs; the old one is dropped, as if killed. */
  async restart(
    script: Partial<Pick<ScriptedDriver, 'onDestroy' | 'onRecover' | 'onSlept' | 'onEgress'>> = {},
  ): Promise<void> {
    if (this.lifecycle !== undefined) {
      this.driver.killed = true;
      // Waits for calls in flight: two daemons never write to one folder.
      await this.lifecycle.close(new AbortController().signal);
    }
    this.driver = Object.assign(new ScriptedDriver(this.machine), script);
    this.directory = new VmDirectory(join(this.root, 'vms'), new DataKeys(join(this.root, 'keys')));
    this.fences = new FenceDirectory(join(this.root, 'fences'));
    await this.directory.open();
    await this.fences.open();
    this.lifecycle = new VmLifecycle(
      {
        driver: this.driver,
        directory: this.directory,
        fences: this.fences,
        encryptDisks: this.encryptDisks,
        ...(this.models === undefined ? {} : { models: this.models }),
        log: pino({ level: 'silent' }),
        guests: DIRECT_GUESTS,
        streams: new GuestStreams(this.streamLimits),
        deadlines: this.deadlines,
      },
      {
        policy: POLICY,
        largest: LARGEST,
        readHost: (vmIds) => ({
          ...this.figures,
          ...this.readDisk(vmIds.map((id) => join(this.root, 'vms', id))),
        }),
      },
    );
    await this.lifecycle.recover();
  }

  /** Runs a command in the guest. */
  async exec(id: string, body: GuestExecRequest, signal: AbortSignal): Promise<Readable> {
    return this.lifecycle.running(id).guest.stream(exec, { body }, { signal });
  }

  /** Guest of the VM's one process. */
  guest(id: string): ScriptedGuest {
    const [vm] = this.machine.of(id);
    assert.ok(vm);
    return vm.guest;
  }

  async answersExec(id: string): Promise<void> {
    const output = await this.exec(id, { command: 'true', timeoutSeconds: 5 }, new AbortController().signal);
    assert.match(String(await output.toArray()), /"exitCode":0/);
  }

  /** Creates the VM and puts it to sleep; returns the guest of its create. */
  async makeAsleep(id: string): Promise<ScriptedGuest> {
    await this.lifecycle.create(id, { epoch: 1, spec: SMALL });
    const created = this.guest(id);
    await this.lifecycle.sleep(id, { epoch: 2 });
    return created;
  }

  async becomes(id: string, status: VmStatus): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS;
    while (this.lifecycle.get(id).status !== status) {
      if (performance.now() > deadline)
        throw new Error(`${id} is ${this.lifecycle.get(id).status}, not ${status}, after ${DEADLINE_MS / 1_000} s`);

      await setImmediate();
    }
  }

  /** The VM's record on disk. */
  async recordOf(id: string): Promise<VmRecord> {
    const found = await this.directory.read(id);
    if (found.kind !== 'record') throw new Error(`${id} has no record: ${found.kind}`);

    return found.record;
  }

  /** Names of VM folders on disk. */
  async folders(): Promise<string[]> {
    return (await readdir(join(this.root, 'vms'))).sort();
  }

  async stop(): Promise<void> {
    await this.lifecycle.close(AbortSignal.abort());
    await this.machine.stop();
    await rm(this.root, { recursive: true });
  }
}

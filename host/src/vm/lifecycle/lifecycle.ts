// Owns every VM of this host. States and the verbs that change them (an unnamed arrow is the
// success of the verb on its left):
//
//   (none) --create--> creating -> running --sleep--> sleeping -> asleep --wake--> waking -> running
//     running --resize--> running
//     failed create, exited process, wake that failed after its VM ran: dead --wake, if it ever ran--> waking
//     any --destroy--> destroying -> destroyed (only the epoch is kept)
//
// Checks each call's epoch (fencing.ts), admits or refuses it, and runs the verb in the VM's turn.
// Must not know HTTP.
import type { Duplex, Readable } from 'node:stream';
import type { VmClone } from '@berth/protocol/calls/clones.ts';
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import { growthOf, reservationOf, type Amounts } from '../admission.ts';
import type { GuestClient } from '../../guest/client.ts';
import type { StreamLabel } from '../../guest/guest-streams.ts';
import { HostError } from '../host-error.ts';
import { Capacity, type Admission } from '../owned/capacity.ts';
import { decideCreate, decideDestroy, decideResize, decideSleep, decideWake, type Verdict } from '../owned/fencing.ts';
import { cloneInto } from './clone.ts';
import { VmConsoles } from './consoles.ts';
import { startVm } from './create.ts';
import { destroyVm } from './destroy.ts';
import { changeEgress, type EgressOrder } from './egress.ts';
import { detach } from './exit.ts';
import { raiseEpoch } from './raise.ts';
import { recoverAll } from './recover.ts';
import { sshHostKeyOf } from './names.ts';
import { grow } from './resize.ts';
import { putToSleep } from './sleep.ts';
import { wakeUp } from './wake.ts';
import { metricsOf } from './metrics.ts';
import { MetricsSampler } from './metrics-sampler.ts';
import { largerOf, newerEgress, newRecord, OwnedVm, sizeOf, type LifecycleParts } from '../owned/owned-vm.ts';
import { Room } from '../owned/room.ts';
import { OwnedVms } from '../owned/owned-vms.ts';
import { UnreadVms } from './unread-vms.ts';

/** A create or wake of one epoch. A control plane of an earlier release sends no key. */
interface VmOrder {
  epoch: number;
  spec: VmSpec;
  dataKey?: string | undefined;
}

export class VmLifecycle {
  readonly #parts: LifecycleParts;
  readonly #capacity: Capacity;
  readonly #vms: OwnedVms;
  readonly #unread: UnreadVms;
  readonly #room: Room;
  readonly sampler: MetricsSampler;
  readonly consoles: VmConsoles;

  constructor(parts: LifecycleParts, admission: Admission) {
    this.#parts = parts;
    this.#vms = new OwnedVms(parts);
    this.#unread = new UnreadVms(parts, this.#vms);
    this.#capacity = new Capacity(admission, () => this.#vms.values());
    this.#room = new Room(() => this.#vms.values(), parts.pool);
    this.sampler = new MetricsSampler(parts, this.#vms);
    this.consoles = new VmConsoles(parts, this.#vms);
  }

  /**
   * Takes over an earlier daemon's VMs: adopts running ones, ends half-made ones, reaps what no
   * record names. Call once, before any other call.
   */
  async recover(): Promise<void> {
    const { owned, unread } = await recoverAll(this.#parts);
    owned.forEach((vm) => this.#vms.add(vm));
    unread.forEach((id) => this.#unread.add(id));
  }

  list(): VmView[] {
    return this.#vms.list();
  }

  /** Throws `vm_not_found` for an unknown or forgotten VM. */
  get(id: string): VmView {
    return this.#vms.show(id);
  }

  /**
   * Resolves with the VM `running`. Calls with the same epoch and spec share one attempt. A caller
   * that disconnects does not stop it. Without capacity, waits for room that is about to be free.
   */
  async create(id: string, { epoch, spec, dataKey }: VmOrder): Promise<VmView> {
    if (this.#unread.has(id)) await this.#unread.takeOver(id);

    const patience = this.#room.patience();
    // Decide again after each wait: another verb may have overtaken this one.
    for (;;) {
      const verdict = decideCreate(this.#vms.known(id), epoch, spec);
      switch (verdict.do) {
        case 'refuse':
          throw new HostError(verdict.code, verdict.message);
        case 'ran-and-died':
          throw new HostError(
            'create_failed',
            `the VM ran under this epoch and died: ${this.#vms.find(id)?.record.reason ?? 'unknown'}`,
          );
        case 'answer':
          return this.get(id);
        case 'replace':
          await destroyVm(this.#parts, this.#vms, id, 0);
          break;
        case 'wake':
          return this.wake(id, { epoch, spec, dataKey });
        case 'join':
          await this.#vms.underWay(id).done;
          break;
        case 'start':
          await this.#room.run(id, patience, () => this.#start(id, { epoch, spec, dataKey }));
          break;
      }
    }
  }

  /** Resolves with the VM `asleep`. Waits for a create, wake or resize in progress. */
  async sleep(id: string, { epoch, dataKey }: Omit<VmOrder, 'spec'>): Promise<VmView> {
    return this.#execute(
      id,
      epoch,
      () => decideSleep(this.#vms.known(id), epoch),
      (vm) =>
        vm.begin({ status: 'sleeping', epoch, size: sizeOf(vm.record.spec) }, (abort) =>
          putToSleep(this.#parts, vm, { epoch, dataKey: dataKey ?? null }, abort),
        ),
    );
  }

  /** Resolves with the VM `running`, at the size of the spec as far as its guest allows. */
  async wake(id: string, { epoch, spec, dataKey }: VmOrder): Promise<VmView> {
    const size = sizeOf(spec);
    return this.#execute(
      id,
      epoch,
      () => decideWake(this.#vms.known(id), epoch),
      (vm) => {
        const { spec: before, snapshot } = vm.record;
        // A snapshot is restored at its own size and releases the surplus afterwards. Its disk
        // space is already reserved.
        const needed = snapshot ? largerOf(before, size) : size;
        this.#capacity.admit({ ...needed, diskGib: growthOf(before, size).diskGib }, 'machine');
        const order = { epoch, size, dataKey: dataKey ?? null, egress: newerEgress(spec.egress, before.egress) };
        return vm.begin({ status: 'waking', epoch, size }, (abort) => wakeUp(this.#parts, vm, order, abort));
      },
    );
  }

  async resize(id: string, { epoch, size }: { epoch: number; size: Amounts }): Promise<VmView> {
    return this.#execute(
      id,
      epoch,
      () => decideResize(this.#vms.known(id), epoch, size),
      (vm) => {
        this.#capacity.admit(growthOf(vm.record.spec, size), 'added');
        return vm.begin({ status: 'resizing', epoch, size }, (abort) => grow(this.#parts, vm, { epoch, size }, abort));
      },
    );
  }

  /** Resolves when the policy, or a newer one, is in force. Waits for a verb in progress. */
  async setEgress(id: string, order: EgressOrder): Promise<VmView> {
    if (this.#unread.has(id)) await this.#unread.takeOver(id);
    return changeEgress(this.#parts, this.#vms, id, order);
  }

  /** Resolves when nothing of the VM is left. Overtakes any verb in progress. */
  async destroy(id: string, epoch: number): Promise<VmView> {
    if (this.#unread.has(id)) await this.#unread.takeOver(id);

    const verdict = decideDestroy(this.#vms.known(id), epoch);
    if (verdict.do === 'refuse') throw new HostError(verdict.code, verdict.message);

    if (verdict.do === 'end') await destroyVm(this.#parts, this.#vms, id, epoch);

    await this.#parts.directory.removeSetAside(id);
    await this.#parts.fences.raise(id, epoch);
    return { id, epoch, status: 'destroyed' };
  }

  /**
   * Clones a repository in a `running` VM. Resolves with the response of the guest. Throws
   * `stale_epoch` for an epoch older than the newest seen.
   */
  async clone(id: string, { epoch, ...clone }: VmClone, signal: AbortSignal): Promise<Readable> {
    const { vm, guest } = this.#vms.running(id, epoch);
    return cloneInto(vm, guest, clone, signal);
  }

  /** Opens a raw stream into a `running` VM; see `GuestStreams.open`. */
  async openStream(
    id: string,
    label: StreamLabel,
    signal: AbortSignal,
    open: (guest: GuestClient, opening: AbortSignal) => Promise<Duplex>,
  ): Promise<Duplex> {
    const { vm, guest } = this.#vms.running(id);
    return this.#parts.streams.open(vm, label, signal, (opening) => open(guest, opening));
  }

  /** Closes streams by their names; see `GuestStreams.close`. */
  closeStreams(names: readonly string[]): void {
    this.#parts.streams.close(names);
  }

  /** A `running` VM and its guest, for calls that are no verbs. */
  running(id: string, epoch?: number): ReturnType<OwnedVms['running']> {
    return this.#vms.running(id, epoch);
  }

  async metrics(id: string, signal: AbortSignal): ReturnType<typeof metricsOf> {
    const { vm, guest } = this.#vms.running(id);
    return metricsOf(this.#parts, vm, guest, signal);
  }

  /** SSH host key of a VM that is or was `running`; `vm_not_found` for others. */
  sshHostKey(id: string): ReturnType<typeof sshHostKeyOf> {
    return sshHostKeyOf(this.#parts, id, this.#vms.find(id));
  }

  /** Allocatable and reserved resources, and the largest possible VM; memory as seen by guests. */
  capacity(): { capacity: Amounts; reserved: Amounts; largest: Amounts } {
    return this.#capacity.figures();
  }

  /**
   * Detaches from the VMs, which keep running. Verbs in progress have until the signal aborts; then
   * they are undone, or left to the next daemon.
   */
  async close(patience: AbortSignal): Promise<void> {
    this.#room.close();
    const stop = (): void => {
      for (const { operation } of this.#vms.values())
        operation?.abort.abort(new HostError('internal', 'the host daemon is shutting down'));
    };
    patience.addEventListener('abort', stop, { once: true });
    if (patience.aborted) stop();

    await Promise.all([...this.#vms.values()].map((vm) => vm.queue.over()));
    patience.removeEventListener('abort', stop);
    for (const vm of this.#vms.values()) detach(vm);
  }

  /** No await between reading the figures and promising: two calls must not get the same room. */
  #start(id: string, { epoch, spec, dataKey }: VmOrder): { done: Promise<void> } {
    const size = sizeOf(spec);
    this.#capacity.admit(reservationOf(size), 'machine', id);
    const earlier = this.#vms.find(id);
    const record = newRecord(id, epoch, spec);
    const vm = earlier ?? new OwnedVm(record);
    vm.record =
      earlier === undefined || earlier.record.freed ? record : { ...record, driverState: earlier.record.driverState };
    this.#vms.add(vm);

    return vm.begin({ status: 'creating', epoch, size }, (abort) => startVm(this.#parts, vm, dataKey ?? null, abort));
  }

  /**
   * Decides again after each wait, like a create. `begin` must not await before the verb is in
   * progress.
   */
  async #execute(
    id: string,
    epoch: number,
    judge: () => Verdict<HostError['code']>,
    begin: (vm: OwnedVm) => { done: Promise<void> },
  ): Promise<VmView> {
    if (this.#unread.has(id)) await this.#unread.takeOver(id);

    const patience = this.#room.patience();
    for (;;) {
      const verdict = judge();
      if (verdict.do === 'refuse') throw new HostError(verdict.code, verdict.message);

      const vm = this.#vms.find(id);
      if (vm === undefined) throw new Error(`bug: a decision about the unknown VM ${id}`);

      switch (verdict.do) {
        case 'answer':
          if (vm.record.epoch >= epoch) return this.#vms.view(vm);

          await vm.queue.run(() => raiseEpoch(this.#parts, vm, epoch));
          break;
        case 'join':
          await this.#vms.underWay(id).done;
          break;
        case 'wait':
          // Its own callers learn of a failure.
          await this.#vms.underWay(id).done.catch(() => undefined);
          break;
        case 'start':
          await this.#room.run(id, patience, () => begin(vm));
          break;
      }
    }
  }
}

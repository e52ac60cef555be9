// Keeps the rows of hosts up to date, and holds what a host has against what the sandboxes' rows say: a sandbox whose machine is gone
// becomes `failed`, a machine that no sandbox claims is destroyed. It never touches a machine or a row that a step is at work on.
//
// The order of the reads is what makes it safe while sandboxes come and go:
//   1. rows of awake sandboxes   2. the host's list   3. the rows of those listed that were not in 1, or not with this epoch
// A row is awake only after the host said that its machine runs, so a machine missing from 2 was there before 1 and is gone: rows before
// the list. A machine exists only after its row was committed, so a machine of 2 without a claim in 3 has none: rows after the list.
import { SANDBOX_STATES } from '@berth/contract/sandbox-state.ts';
import type { VmView } from '@berth/protocol/host.ts';
import type { HostClient } from '../hosts/client.ts';
import { transitionSandbox } from '../services/sandbox-transition.ts';
import { upsertHost } from '../store/hosts.ts';
import { findFences, listAwakeOnHost, type SandboxFence } from '../store/lifecycle.ts';
import { crashPoint } from './crash-point.ts';
import type { StepContext } from './step-context.ts';

export class HostHealth {
  readonly #context: StepContext;
  readonly #client: HostClient;
  /** Awake sandboxes the host did not list last time (`id:epoch`): one list alone declares nothing lost that the host does not call dead. */
  #unlisted = new Set<string>();
  #reachable: boolean | undefined;

  constructor(context: StepContext, hostUrl: string) {
    this.#context = context;
    this.#client = context.hosts.at(hostUrl);
  }

  /** Asks the host once and acts on it. A host that does not answer is logged when that begins and when it ends; nothing else happens. */
  async tick(): Promise<void> {
    const { db, log, stopping } = this.#context;
    let hostId: string;
    let awake: SandboxFence[];
    let listed: VmView[];
    try {
      const info = await this.#client.info({ signal: stopping });
      hostId = info.hostId;
      await upsertHost(db, { ...info, id: info.hostId, url: this.#client.url });
      awake = await listAwakeOnHost(db, hostId);
      listed = await this.#client.listVms({ signal: stopping });
    } catch (error) {
      if (stopping.aborted) return;
      if (this.#reachable !== false) log.warn({ err: error, host: this.#client.url }, 'a host cannot be asked');
      this.#reachable = false;
      return;
    }
    if (this.#reachable !== true) log.info({ hostId, host: this.#client.url, vms: listed.length }, 'a host answers');
    this.#reachable = true;
    await this.#failLost(awake, new Map(listed.map((vm) => [vm.id, vm])));
    await this.#reapUnclaimed(hostId, awake, listed);
  }

  async #failLost(awake: SandboxFence[], listed: Map<string, VmView>): Promise<void> {
    const unlisted = new Set<string>();
    for (const sandbox of awake) {
      const vm = listed.get(sandbox.id);
      if (vm !== undefined && vm.epoch > sandbox.epoch) continue;
      const present = vm !== undefined && vm.epoch === sandbox.epoch;
      if (present && vm.status !== 'dead') continue;
      if (!present) {
        const key = `${sandbox.id}:${sandbox.epoch}`;
        unlisted.add(key);
        if (!this.#unlisted.has(key)) continue;
      }
      await this.#fail(sandbox, (present ? vm.reason : undefined) ?? 'its host no longer has its machine');
    }
    this.#unlisted = unlisted;
  }

  async #fail(sandbox: SandboxFence, message: string): Promise<void> {
    const result = await this.#context.db.transaction().execute(async (trx) => {
      // The epoch is the one read before the list: whatever was asked for since wins.
      const written = await transitionSandbox(trx, {
        sandboxId: sandbox.id,
        epoch: sandbox.epoch,
        to: 'failed',
        newEpoch: true,
        reason: { code: 'machine_lost', message },
        actor: { kind: 'system', id: null, userId: null },
      });
      crashPoint('lost:written');
      return written;
    });
    crashPoint('lost:settled');
    if (result.outcome === 'changed') this.#context.log.warn({ sandboxId: sandbox.id, reason: message }, 'a sandbox lost its machine');
  }

  async #reapUnclaimed(hostId: string, awake: SandboxFence[], listed: VmView[]): Promise<void> {
    const claimed = new Map(awake.map((sandbox) => [sandbox.id, sandbox.epoch]));
    const doubtful = listed.filter((vm) => claimed.get(vm.id) !== vm.epoch || vm.status === 'dead');
    const fences = await findFences(
      this.#context.db,
      doubtful.map((vm) => vm.id),
    );
    for (const vm of doubtful) {
      const epoch = reapingEpoch(vm, fences.get(vm.id), hostId);
      if (epoch === undefined) continue;
      await this.#reap(vm, epoch);
    }
  }

  async #reap(vm: VmView, epoch: number): Promise<void> {
    const { log, stopping } = this.#context;
    try {
      await this.#client.destroyVm(vm.id, epoch, { signal: stopping });
      crashPoint('reap:gone');
      log.warn({ vmId: vm.id, epoch, status: vm.status }, 'destroyed a machine that no sandbox claims');
    } catch (error) {
      // A destroy with a newer epoch came in between, or the host went away: the next look sees what is left.
      if (!stopping.aborted) log.warn({ err: error, vmId: vm.id, epoch }, 'could not destroy a machine that no sandbox claims');
    }
  }
}

/** The epoch to destroy a listed machine with, or undefined when it is to be left alone: claimed, or under the hands of a step. */
export function reapingEpoch(vm: VmView, sandbox: SandboxFence | undefined, hostId: string): number | undefined {
  if (sandbox === undefined) return vm.epoch;
  // The host knows of a newer intent than the database (a restored backup): not ours to judge.
  if (vm.epoch > sandbox.epoch) return undefined;
  if (!SANDBOX_STATES[sandbox.status].holdsMachine || sandbox.hostId !== hostId) return sandbox.epoch;
  return undefined;
}

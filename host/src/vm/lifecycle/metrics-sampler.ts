// Samples the host's figures of every running VM into its history. Queries no guest, so that it is
// no use of a sandbox.
import { setTimeout as delay } from 'node:timers/promises';
import { VM_HISTORY, type VmHistory } from '@berth/protocol/calls/metrics.ts';
import { HostError } from '../host-error.ts';
import { emptyHistory, MetricsHistory } from '../owned/metrics-history.ts';
import type { LifecycleParts } from '../owned/owned-vm.ts';
import type { OwnedVms } from '../owned/owned-vms.ts';

const STEP_MS = VM_HISTORY[0].stepSeconds * 1_000;
/** Limit of histories on a host: about 30 MB. VMs that sleep longest lose theirs first. */
const HISTORIES = 512;

export class MetricsSampler {
  readonly #parts: Pick<LifecycleParts, 'driver' | 'directory' | 'log'>;
  readonly #vms: OwnedVms;
  readonly #limit: number;

  constructor(parts: Pick<LifecycleParts, 'driver' | 'directory' | 'log'>, vms: OwnedVms, limit = HISTORIES) {
    this.#parts = parts;
    this.#vms = vms;
    this.#limit = limit;
  }

  /** Samples once a step until the signal aborts, in its middle: a late timer misses no step. */
  async run(signal: AbortSignal, stepMs = STEP_MS): Promise<void> {
    let step = 0;
    for (;;) {
      const current = Math.floor(Date.now() / stepMs);
      step = Math.min(Math.max(step + 1, current), current + 1);
      const waitMs = Math.max(0, (step + 0.5) * stepMs - Date.now());
      await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await this.sample();
    }
  }

  /** Samples the VMs in turn, which takes no more than one thread. */
  async sample(unixMs = Date.now()): Promise<void> {
    for (const vm of [...this.#vms.values()]) {
      const { status } = vm.known();
      const process = status === 'running' || status === 'resizing' ? vm.watch?.process : undefined;
      if (process === undefined || (vm.history === null && !this.#hasRoom())) continue;
      try {
        const { driver, directory } = this.#parts;
        const figures = await driver.figures(directory.driverFolder(vm.id), vm.record.driverState ?? {});
        if (vm.watch?.process !== process) continue;
        vm.history ??= new MetricsHistory();
        vm.history.record({ ...figures, unixMs, vcpu: vm.record.spec.vcpu, process });
      } catch (error) {
        // Most likely it exited meanwhile; its watch reports that.
        this.#parts.log.debug({ vmId: vm.id, err: error }, 'could not sample the metrics of a VM');
      }
    }
  }

  /** Throws `vm_not_found` for an unknown or destroyed VM. */
  historyOf(id: string, windowSeconds: number, nowUnixMs = Date.now()): VmHistory {
    const vm = this.#vms.find(id);
    if (vm === undefined) throw new HostError('vm_not_found', `no VM ${id} on this host`);
    return vm.history?.read(windowSeconds, nowUnixMs) ?? emptyHistory(windowSeconds);
  }

  /** Makes room if a VM that does not run has a history. */
  #hasRoom(): boolean {
    const kept = [...this.#vms.values()].filter(({ history }) => history !== null);
    if (kept.length < this.#limit) return true;
    const [oldest] = kept
      .filter(({ watch }) => watch === null)
      .toSorted((a, b) => (a.history?.lastUnixMs ?? 0) - (b.history?.lastUnixMs ?? 0));
    if (oldest !== undefined) oldest.history = null;
    return oldest !== undefined;
  }
}

// Compares a host's VMs with the sandbox rows, in both directions, and repairs each difference as
// decided by rules/hosts/reconciliation.ts. Never touches a VM or row with a step in progress.
// The order of the reads makes this safe while sandboxes are created and deleted:
// 1. the rows of the host's sandboxes
// 2. the host's list
// 3. the rows of listed VMs that 1 destroys or does not contain
// A row becomes awake or stopped only after the host reported the same. A difference between 1 and
// 2 is therefore newer than the row, and any newer intent raised the epoch that fences each write:
// read rows before the list. A VM exists only after its row was committed, so a VM of 2 without a
// row in 3 is unclaimed: read rows after the list.
import type { VmView } from '@berth/protocol/host.ts';
import type { HostClient } from '../../hosts/client.ts';
import { reconcile, type Decision, type VmFacts } from '../../rules/hosts/reconciliation.ts';
import { adoptSize } from '../../services/sandboxes/resize.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox, writeRemains } from '../../services/sandboxes/transition.ts';
import { wakeAgain } from '../../services/sandboxes/wake.ts';
import { findFences, listOnHost, type SandboxFence } from '../../store/sandboxes/lifecycle.ts';
import type { WakeSource } from '../../store/sandboxes/sandboxes.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { SYSTEM, type StepContext } from '../steps/step-context.ts';
import { EgressDenials } from './egress-denials.ts';
import { sendEgress } from './egress.ts';
import { ModelAccessRepair } from './model-access.ts';
import { sizeOf } from './vm-spec.ts';

export class Reconciler {
  readonly #context: StepContext;
  readonly #client: HostClient;
  /** VMs missing from the host's last list, with the time of their last sighting. */
  #missed = new Map<string, Date | null>();
  /**
   * In-flight calls that repair a VM, keyed by VM id. Reconciliation does not wait for
   * them: a call takes seconds.
   */
  readonly #cleanups = new Map<string, Promise<void>>();
  readonly #denials: EgressDenials;
  readonly #models: ModelAccessRepair;
  /** Differences without a safe repair; logged when they first appear. */
  #reported = new Set<string>();

  constructor(context: StepContext, client: HostClient) {
    this.#context = context;
    this.#client = client;
    this.#denials = new EgressDenials(context);
    this.#models = new ModelAccessRepair(context, client);
  }

  /** Differences left unrepaired, a line each. */
  get unrepaired(): readonly string[] {
    return [...this.#reported];
  }

  /**
   * Reconciles once. `seenAt`: time of the previous successful poll. Rejects when the host or the
   * database is unreachable.
   */
  async run(hostId: string, seenAt: Date | null): Promise<void> {
    const rows = await listOnHost(this.#context.db, hostId);
    const listed = await this.#client.listVms({ signal: this.#context.stopping });
    const vms = new Map(listed.map((vm) => [vm.id, vm]));
    await this.#models.repair(rows, vms);
    const missed = new Map<string, Date | null>();
    const claimed = new Set<string>();
    for (const row of rows) {
      const vm = vms.get(row.id);
      const key = `${row.id}:${row.epoch}`;
      const missedBefore = this.#missed.get(key);
      const decision = reconcile(row, factsOf(vm), { hostId, missedBefore: missedBefore !== undefined });
      if (decision.do === 'destroy' || decision.do === 'report') continue;
      claimed.add(row.id);
      if (decision.do === 'look-again') missed.set(key, seenAt);
      else await this.#repair(row, decision, lastAlive(vm) ?? missedBefore ?? seenAt);
    }
    this.#missed = missed;
    await this.#denials.note(rows, vms);
    await this.#reconcileUnclaimed(
      hostId,
      listed.filter((vm) => !claimed.has(vm.id)),
    );
  }

  /** Clears missing VMs: the next pass counts each as missing for the first time. */
  forget(): void {
    this.#missed.clear();
  }

  /** Resolves when no cleanup call is in flight. */
  async idle(): Promise<void> {
    await Promise.all([...this.#cleanups.values(), this.#models.idle()]);
  }

  async #repair(row: SandboxFence, decision: Decision, lastAliveAt: Date | null): Promise<void> {
    try {
      switch (decision.do) {
        case 'change':
          await this.#change(row, decision, lastAliveAt);
          return;
        case 'wake':
          await this.#wake(row, decision.wakesFrom, lastAliveAt);
          return;
        case 'note':
          await this.#context.db
            .transaction()
            .execute((trx) => writeRemains(trx, { sandboxId: row.id, epoch: row.epoch, ...decision }));
          return;
        case 'adopt-size':
          await this.#context.db
            .transaction()
            .execute((trx) => adoptSize(trx, { sandboxId: row.id, epoch: row.epoch, allocation: decision.size }));
          return;
        case 'set-egress':
          this.#setEgress(row);
          return;
        case 'put-to-sleep':
          this.#putToSleep(row.id, decision.epoch);
          return;
        default:
      }
    } catch (error) {
      // A failed write must not block the other sandboxes; the next pass retries.
      if (!this.#context.stopping.aborted)
        this.#context.log.warn({ err: error, sandboxId: row.id, decision }, 'could not repair a difference');
    }
  }

  async #change(
    row: SandboxFence,
    decision: Extract<Decision, { do: 'change' }>,
    lastAliveAt: Date | null,
  ): Promise<void> {
    const lost = decision.to === 'failed';
    const result = await this.#context.db.transaction().execute(async (trx) => {
      // Use the epoch read before the list: any newer intent wins.
      const change = {
        sandboxId: row.id,
        epoch: row.epoch,
        newEpoch: lost,
        reason: decision.reason ?? undefined,
        wakesFrom: decision.wakesFrom,
        allocated: decision.size ?? undefined,
        lastAliveAt,
        actor: SYSTEM,
      };
      const { to } = decision;
      const written = await (to === 'ready'
        ? settleAwake(trx, this.#context.lifecycle, change)
        : transitionSandbox(trx, { ...change, to }));
      crashPoint(lost ? 'lost:written' : 'recovered:written');
      return written;
    });
    crashPoint(lost ? 'lost:settled' : 'recovered:settled');
    if (result.outcome !== 'changed') return;
    const { reason } = decision;
    const to = result.sandbox.status;
    if (to === 'running') this.#context.lifecycle.started();
    this.#context.log.warn(
      { sandboxId: row.id, from: row.status, to, reason },
      'updated a sandbox row that differed from its VM',
    );
  }

  async #wake({ id: sandboxId, epoch }: SandboxFence, wakesFrom: WakeSource, lastAliveAt: Date | null): Promise<void> {
    const change = { sandboxId, epoch, wakesFrom, lastAliveAt, actor: SYSTEM };
    const { outcome } = await this.#context.db.transaction().execute((trx) => wakeAgain(this.#context, trx, change));
    if (outcome !== 'changed') return;
    this.#context.lifecycle.started();
    this.#context.log.info({ sandboxId }, 'waking a sandbox whose host had stopped');
  }

  async #reconcileUnclaimed(hostId: string, unclaimed: VmView[]): Promise<void> {
    const fences = await findFences(
      this.#context.db,
      unclaimed.map((vm) => vm.id),
    );
    const reported = new Set<string>();
    for (const vm of unclaimed) {
      const decision = reconcile(fences.get(vm.id), factsOf(vm), { hostId, missedBefore: false });
      if (decision.do === 'destroy') this.#destroy(vm, decision.epoch);
      if (decision.do !== 'report') continue;
      const line = `${vm.id} on ${hostId}: ${decision.message}`;
      reported.add(line);
      if (!this.#reported.has(line))
        this.#context.log.error({ vmId: vm.id, hostId, status: vm.status }, `difference left unrepaired: ${line}`);
    }
    this.#reported = reported;
  }

  #destroy(vm: VmView, epoch: number): void {
    this.#startCleanup(vm.id, 'destroy an unclaimed VM', async (signal) => {
      await this.#client.destroyVm(vm.id, epoch, { signal });
      crashPoint('reap:gone');
      this.#context.log.warn({ vmId: vm.id, epoch, status: vm.status }, 'destroyed an unclaimed VM');
    });
  }

  #putToSleep(vmId: string, epoch: number): void {
    this.#startCleanup(vmId, 'put the VM of a stopped sandbox to sleep', async (signal) => {
      await this.#client.sleepVm(vmId, { epoch }, { signal });
      this.#context.log.warn({ vmId, epoch }, 'put the VM of a stopped sandbox to sleep');
    });
  }

  #setEgress({ id, epoch }: SandboxFence): void {
    this.#startCleanup(id, 'set the egress policy of a VM', (signal) =>
      sendEgress(this.#context, this.#client, { id, epoch }, signal),
    );
  }

  #startCleanup(vmId: string, what: string, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#cleanups.has(vmId)) return;
    const { log, stopping } = this.#context;
    const running = run(stopping)
      // A newer intent arrived, or the host became unreachable: the next pass handles the rest.
      .catch((error: unknown) => {
        if (!stopping.aborted) log.warn({ err: error, vmId }, `could not ${what}`);
      })
      .finally(() => this.#cleanups.delete(vmId));
    this.#cleanups.set(vmId, running);
  }
}

function factsOf(vm: VmView | undefined): VmFacts | undefined {
  return vm && { ...vm, size: sizeOf(vm) };
}

function lastAlive(vm: VmView | undefined): Date | undefined {
  return vm?.lastAliveUnixMs === undefined ? undefined : new Date(vm.lastAliveUnixMs);
}

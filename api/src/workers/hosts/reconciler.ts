// Holds what one host has against what the sandboxes' rows say, both ways, and mends each
// difference as rules/reconciliation.ts decides. It never touches a machine or a row that a step is
// at work on.
//
// The order of the reads is what makes it safe while sandboxes come and go:
//   1. the rows of the host's sandboxes   2. the host's list   3. the rows of those listed that are to be destroyed by 1, or are not in it
// A row says awake, or stopped, only after the host said the same, so what 2 says against 1
// happened since, and whatever was asked for since has raised the epoch that every write is fenced
// by: rows before the list. A machine exists only after its row was committed, so a machine of 2
// without a claim in 3 has none: rows after the list.
import type { VmView } from '@berth/protocol/host.ts';
import type { HostClient } from '../../hosts/client.ts';
import { reconcile, type Decision, type MachineFacts } from '../../rules/hosts/reconciliation.ts';
import { adoptSize } from '../../services/sandboxes/resize.ts';
import { settleAwake } from '../../services/clones/clone.ts';
import { transitionSandbox, writeRemains } from '../../services/sandboxes/transition.ts';
import { findFences, listOnHost, type SandboxFence } from '../../store/sandboxes/lifecycle.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { SYSTEM, type StepContext } from '../steps/step-context.ts';
import { sizeOf } from './vm-spec.ts';

export class Reconciler {
  readonly #context: StepContext;
  readonly #client: HostClient;
  /**
   * What the host should have and did not list last time, with when it was last seen before that.
   */
  #missed = new Map<string, Date | null>();
  /**
   * Calls of the host that are under way for machines nobody claims, by machine: they take seconds,
   * and a look must not wait for them.
   */
  readonly #errands = new Map<string, Promise<void>>();
  /** Differences that no mending is safe for: logged when they begin. */
  #reported = new Set<string>();

  constructor(context: StepContext, client: HostClient) {
    this.#context = context;
    this.#client = client;
  }

  /** Differences that were left as they are, one line each. */
  get unmended(): readonly string[] {
    return [...this.#reported];
  }

  /**
   * One look. `seenAt`: when the host was last seen before it. Rejects when the host cannot be
   * asked, or the database.
   */
  async look(hostId: string, seenAt: Date | null): Promise<void> {
    const rows = await listOnHost(this.#context.db, hostId);
    const listed = await this.#client.listVms({ signal: this.#context.stopping });
    const machines = new Map(listed.map((vm) => [vm.id, vm]));
    const missed = new Map<string, Date | null>();
    const claimed = new Set<string>();
    for (const row of rows) {
      const vm = machines.get(row.id);
      const key = `${row.id}:${row.epoch}`;
      const missedBefore = this.#missed.get(key);
      const decision = reconcile(row, factsOf(vm), { hostId, missedBefore: missedBefore !== undefined });
      if (decision.do === 'destroy' || decision.do === 'report') continue;
      claimed.add(row.id);
      if (decision.do === 'look-again') missed.set(key, seenAt);
      else await this.#mend(row, decision, lastAlive(vm) ?? missedBefore ?? seenAt);
    }
    this.#missed = missed;
    await this.#judgeUnclaimed(
      hostId,
      listed.filter((vm) => !claimed.has(vm.id)),
    );
  }

  /** What was missed last time is missed for the first time again. */
  forget(): void {
    this.#missed.clear();
  }

  /** Resolves when no call of the host is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#errands.values());
  }

  async #mend(row: SandboxFence, decision: Decision, lastAliveAt: Date | null): Promise<void> {
    try {
      switch (decision.do) {
        case 'change':
          await this.#change(row, decision, lastAliveAt);
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
        case 'put-to-sleep':
          this.#putToSleep(row.id, decision.epoch);
          return;
        default:
      }
    } catch (error) {
      // One sandbox that cannot be written must not keep the others; the next look tries again.
      if (!this.#context.stopping.aborted)
        this.#context.log.warn({ err: error, sandboxId: row.id, decision }, 'could not mend a difference');
    }
  }

  async #change(
    row: SandboxFence,
    decision: Extract<Decision, { do: 'change' }>,
    lastAliveAt: Date | null,
  ): Promise<void> {
    const lost = decision.to === 'failed';
    const result = await this.#context.db.transaction().execute(async (trx) => {
      // The epoch is the one read before the list: whatever was asked for since wins.
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
    this.#context.log.warn({ sandboxId: row.id, from: row.status, to, reason }, 'a sandbox was not as its row said');
  }

  async #judgeUnclaimed(hostId: string, doubtful: VmView[]): Promise<void> {
    const fences = await findFences(
      this.#context.db,
      doubtful.map((vm) => vm.id),
    );
    const reported = new Set<string>();
    for (const vm of doubtful) {
      const decision = reconcile(fences.get(vm.id), factsOf(vm), { hostId, missedBefore: false });
      if (decision.do === 'destroy') this.#destroy(vm, decision.epoch);
      if (decision.do !== 'report') continue;
      const line = `${vm.id} on ${hostId}: ${decision.message}`;
      reported.add(line);
      if (!this.#reported.has(line))
        this.#context.log.error({ vmId: vm.id, hostId, status: vm.status }, `a difference is left as it is: ${line}`);
    }
    this.#reported = reported;
  }

  #destroy(vm: VmView, epoch: number): void {
    this.#errand(vm.id, 'destroy a machine that no sandbox claims', async (signal) => {
      await this.#client.destroyVm(vm.id, epoch, { signal });
      crashPoint('reap:gone');
      this.#context.log.warn({ vmId: vm.id, epoch, status: vm.status }, 'destroyed a machine that no sandbox claims');
    });
  }

  #putToSleep(vmId: string, epoch: number): void {
    this.#errand(vmId, 'put a machine to sleep whose sandbox sleeps', async (signal) => {
      await this.#client.sleepVm(vmId, { epoch }, { signal });
      this.#context.log.warn({ vmId, epoch }, 'put a machine to sleep whose sandbox sleeps');
    });
  }

  #errand(vmId: string, what: string, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#errands.has(vmId)) return;
    const { log, stopping } = this.#context;
    const running = run(stopping)
      // A newer intent came in between, or the host went away: the next look sees what is left.
      .catch((error: unknown) => {
        if (!stopping.aborted) log.warn({ err: error, vmId }, `could not ${what}`);
      })
      .finally(() => this.#errands.delete(vmId));
    this.#errands.set(vmId, running);
  }
}

function factsOf(vm: VmView | undefined): MachineFacts | undefined {
  return vm && { ...vm, size: sizeOf(vm) };
}

function lastAlive(vm: VmView | undefined): Date | undefined {
  return vm?.lastAliveUnixMs === undefined ? undefined : new Date(vm.lastAliveUnixMs);
}

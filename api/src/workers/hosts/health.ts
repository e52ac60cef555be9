// Polls a host: updates its row, has the reconciler repair differences to the sandbox rows, and
// after long silence fails the sandboxes awake on it, until the host returns. `last_seen_at` is
// written at the end of a successful poll: VMs found dead by a poll died after it.
import { HostError, type HostFailureCode } from '../../hosts/error.ts';
import { HOST_LOST } from '../../rules/sandboxes/machine-death.ts';
import { transitionSandbox } from '../../services/sandboxes/transition.ts';
import { findHostSeen, listHostsAt, upsertHost } from '../../store/hosts/hosts.ts';
import { listAwakeOnHost, type SandboxFence } from '../../store/sandboxes/lifecycle.ts';
import { crashPoint } from '../steps/crash-point.ts';
import type { HostClient } from '../../hosts/client.ts';
import { Reconciler } from './reconciler.ts';
import { SYSTEM, type StepContext } from '../steps/step-context.ts';

const SILENT: ReadonlySet<HostFailureCode> = new Set<HostFailureCode>(['host_unreachable', 'host_timeout']);

export class HostHealth {
  readonly #context: StepContext;
  readonly #client: HostClient;
  readonly #reconciler: Reconciler;
  #reachable: boolean | undefined;
  /**
   * Start of the host's silence as seen by this process. Downtime of the service does not count.
   */
  #silentSince: number | null = null;

  constructor(context: StepContext, hostUrl: string) {
    this.#context = context;
    this.#client = context.hosts.at(hostUrl);
    this.#reconciler = new Reconciler(context, this.#client);
  }

  /**
   * Polls the host once. Logs when it becomes unreachable or reachable. Rejects when the database
   * is unreachable.
   */
  async tick(): Promise<void> {
    const { stopping, log } = this.#context;
    try {
      await this.#poll();
    } catch (error) {
      if (stopping.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (this.#reachable !== false) log.warn({ err: error, host: this.#client.url }, 'host does not respond');
      this.#reachable = false;
      // A host with an unexpected response (another version, another token) is up, and so are its
      // VMs.
      if (!SILENT.has(error.code)) {
        this.#silentSince = null;
        return;
      }
      this.#silentSince ??= performance.now();
      if (performance.now() - this.#silentSince >= this.#context.hostSilenceMs) await this.#failSilent(null);
    }
  }

  /** Called when another replica watches the host: the observations made so far no longer count. */
  rest(): void {
    this.#silentSince = null;
    this.#reconciler.forget();
  }

  /** Resolves when no cleanup call is in flight. */
  async idle(): Promise<void> {
    await this.#reconciler.idle();
  }

  async #poll(): Promise<void> {
    const { db, log, stopping } = this.#context;
    const info = await this.#client.info({ signal: stopping });
    // The host responded, even if the rest of the poll fails.
    this.#silentSince = null;
    const { hostId } = info;
    const report = { ...info, id: hostId, url: this.#client.url };
    const seenAt = await findHostSeen(db, hostId);
    if (seenAt === undefined) await upsertHost(db, report);
    await this.#reconciler.run(hostId, seenAt ?? null);
    await upsertHost(db, report);
    if (this.#reachable !== true) log.info({ hostId, host: this.#client.url }, 'host responds');
    this.#reachable = true;
    // A new host may have taken over this address: VMs of the former one cannot be queried.
    await this.#failSilent(hostId);
  }

  /**
   * Fails the sandboxes awake on hosts with this address, except the given host, after long
   * silence.
   */
  async #failSilent(exceptHostId: string | null): Promise<void> {
    const { db, hostSilenceMs } = this.#context;
    for (const host of await listHostsAt(db, this.#client.url)) {
      if (host.id === exceptHostId || host.silentMs < hostSilenceMs) continue;
      for (const sandbox of await listAwakeOnHost(db, host.id)) await this.#fail(sandbox, host.lastSeenAt);
    }
  }

  async #fail(sandbox: SandboxFence, lastSeenAt: Date): Promise<void> {
    const result = await this.#context.db.transaction().execute(async (trx) => {
      const written = await transitionSandbox(trx, {
        sandboxId: sandbox.id,
        epoch: sandbox.epoch,
        to: 'failed',
        newEpoch: true,
        reason: HOST_LOST,
        wakesFrom: sandbox.mode === 'ephemeral' ? null : 'disk',
        lastAliveAt: lastSeenAt,
        actor: SYSTEM,
      });
      crashPoint('lost:written');
      return written;
    });
    crashPoint('lost:settled');
    if (result.outcome === 'changed')
      this.#context.log.warn({ sandboxId: sandbox.id }, 'sandbox failed: its host does not respond');
  }
}

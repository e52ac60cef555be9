// Looks at one host again and again: keeps its row up to date, has the differences between it and
// the sandboxes' rows mended (reconciler.ts), and, when it is silent for long, fails the sandboxes
// that were awake on it. They come back when it does.
//
// `last_seen_at` is written at the end of a look that succeeded. What a look finds dead died after
// it, so it is a proof of life.
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
   * Since when this process has found the host silent: that the service itself was away is no
   * silence of the host.
   */
  #silentSince: number | null = null;

  constructor(context: StepContext, hostUrl: string) {
    this.#context = context;
    this.#client = context.hosts.at(hostUrl);
    this.#reconciler = new Reconciler(context, this.#client);
  }

  /**
   * Asks the host once and acts on it. A host that does not answer is logged when that begins and
   * when it ends. Rejects when the database cannot be asked.
   */
  async tick(): Promise<void> {
    const { stopping, log } = this.#context;
    try {
      await this.#look();
    } catch (error) {
      if (stopping.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (this.#reachable !== false) log.warn({ err: error, host: this.#client.url }, 'a host cannot be asked');
      this.#reachable = false;
      // One that answers something else (another version, another token) is there, and so are its
      // machines.
      if (!SILENT.has(error.code)) {
        this.#silentSince = null;
        return;
      }
      this.#silentSince ??= performance.now();
      if (performance.now() - this.#silentSince >= this.#context.hostSilenceMs) await this.#failSilent(null);
    }
  }

  /**
   * Another replica looks after the host now: what this one saw until here says nothing about the
   * time until it looks again.
   */
  rest(): void {
    this.#silentSince = null;
    this.#reconciler.forget();
  }

  /** Resolves when nothing that a look began is under way. */
  async idle(): Promise<void> {
    await this.#reconciler.idle();
  }

  async #look(): Promise<void> {
    const { db, log, stopping } = this.#context;
    const info = await this.#client.info({ signal: stopping });
    // It spoke, whatever becomes of the rest of the look.
    this.#silentSince = null;
    const { hostId } = info;
    const report = { ...info, id: hostId, url: this.#client.url };
    const seenAt = await findHostSeen(db, hostId);
    if (seenAt === undefined) await upsertHost(db, report);
    await this.#reconciler.look(hostId, seenAt ?? null);
    await upsertHost(db, report);
    if (this.#reachable !== true) log.info({ hostId, host: this.#client.url }, 'a host answers');
    this.#reachable = true;
    // Another host is at this address than before: what was awake on that one is nowhere to be
    // asked for.
    await this.#failSilent(hostId);
  }

  /**
   * Fails what is awake on the hosts known at this address, but the given one, that have been
   * silent for long.
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
      this.#context.log.warn({ sandboxId: sandbox.id }, 'a sandbox failed: its host is silent');
  }
}

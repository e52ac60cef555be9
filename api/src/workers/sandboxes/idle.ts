// Puts idle sandboxes to sleep, on a single replica, by their activity and the CPU time of their
// VMs. State is only the previous CPU measurement per VM, so after a change of the leader no
// sandbox sleeps before two measurements.
import type { IntentContext } from '../../services/sandboxes/intent.ts';
import { judgeIdleness } from '../../services/sandboxes/idle.ts';
import { listPossibleSleepers, type SleeperRow } from '../../store/sandboxes/activity-signals.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** Poll interval; a sandbox goes to sleep at most this late. */
export const IDLE_EVERY_MS = 5_000;
/**
 * Minimum span of a CPU average: background work of an idle guest comes in bursts of a second or
 * two.
 */
const CPU_SPAN_MS = 30_000;
/** Concurrent transactions; the pool also serves requests. */
const AT_ONCE = 4;

interface IdleWatchOptions {
  context: Pick<StepContext, 'db' | 'hosts' | 'log' | 'stopping'>;
  lifecycle: IntentContext['lifecycle'];
  session: Pick<ReplicaSession, 'leads'>;
  /** Replaces the span of a CPU average. */
  cpuSpanMs?: number;
}

interface CpuLook {
  atMs: number;
  cpuMs: number;
  /** Share of a host CPU over the span that ends with this measurement; null for the first. */
  share: number | null;
}

export class IdleWatch {
  readonly #options: IdleWatchOptions;
  readonly #cpuSpanMs: number;
  #looks = new Map<string, CpuLook>();
  readonly #silentHosts = new Set<string>();

  constructor(options: IdleWatchOptions) {
    this.#options = options;
    this.#cpuSpanMs = options.cpuSpanMs ?? CPU_SPAN_MS;
  }

  async tick(): Promise<void> {
    const { context, session } = this.#options;
    if (!(await session.leads('idle'))) {
      this.#looks.clear();
      return;
    }
    const sleepers = await listPossibleSleepers(context.db);
    const byHost = Map.groupBy(sleepers, ({ hostUrl }) => hostUrl);
    const looks = (await Promise.all([...byHost].map(([url, onHost]) => this.#lookAt(url, onHost)))).flat();
    this.#looks = new Map(looks);
    await this.#judgeAll(sleepers);
  }

  /**
   * Measurements of the VMs of a host. An unreachable host keeps its previous ones, with an unknown
   * current share.
   */
  async #lookAt(url: string, sleepers: SleeperRow[]): Promise<[string, CpuLook][]> {
    const { hosts, log, stopping } = this.#options.context;
    try {
      const vms = await hosts.at(url).listVms({ signal: stopping });
      const atMs = performance.now();
      const cpuMs = new Map(vms.map((vm) => [vm.id, vm.status === 'running' ? vm.cpuMs : undefined]));
      this.#silentHosts.delete(url);
      return sleepers.flatMap(({ id }) => {
        const used = cpuMs.get(id);
        return used === undefined ? [] : [[id, this.#next(this.#looks.get(id), { atMs, cpuMs: used })]];
      });
    } catch (error) {
      if (!stopping.aborted && !this.#silentHosts.has(url))
        log.warn({ err: error, host: url }, 'could not query a host for the activity of its VMs');
      this.#silentHosts.add(url);
      return [];
    }
  }

  #next(before: CpuLook | undefined, { atMs, cpuMs }: { atMs: number; cpuMs: number }): CpuLook {
    // A new process has used less: the VM was asleep in between.
    if (before === undefined || cpuMs < before.cpuMs) return { atMs, cpuMs, share: null };
    const spanMs = atMs - before.atMs;
    return spanMs < this.#cpuSpanMs ? before : { atMs, cpuMs, share: (cpuMs - before.cpuMs) / spanMs };
  }

  async #judgeAll(sleepers: SleeperRow[]): Promise<void> {
    const { stopping } = this.#options.context;
    const waiting = [...sleepers];
    const judgeNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined && !stopping.aborted; next = waiting.shift())
        await this.#judge(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, judgeNext));
  }

  async #judge(sleeper: SleeperRow): Promise<void> {
    const { context, lifecycle } = this.#options;
    try {
      const verdict = await judgeIdleness(
        { db: context.db, log: context.log, lifecycle },
        sleeper,
        this.#looks.get(sleeper.id)?.share ?? null,
      );
      if (verdict === 'idle') {
        context.log.info(
          { sandboxId: sleeper.id, idleSince: sleeper.lastActiveAt },
          'putting an idle sandbox to sleep',
        );
      }
    } catch (error) {
      // A failure must not keep the other sandboxes awake.
      if (!context.stopping.aborted)
        context.log.warn({ err: error, sandboxId: sleeper.id }, 'could not put an idle sandbox to sleep');
    }
  }
}

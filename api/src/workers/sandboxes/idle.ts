// Puts idle sandboxes to sleep, on a single replica, by their activity and the CPU time of their
// VMs; rules/sandboxes/idleness.ts decides. State is only the previous CPU measurement per VM, so
// after a change of the leader no sandbox sleeps before two measurements.
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
  session: Pick<ReplicaSession, 'isLeader'>;
  /** Replaces the span of a CPU average. */
  cpuSpanMs?: number;
}

interface CpuSample {
  atMs: number;
  cpuMs: number;
  /** Share of a host CPU over the span that ends with this measurement; null for the first. */
  share: number | null;
}

export class IdleWatch {
  readonly #options: IdleWatchOptions;
  readonly #cpuSpanMs: number;
  #samples = new Map<string, CpuSample>();
  readonly #silentHosts = new Set<string>();

  constructor(options: IdleWatchOptions) {
    this.#options = options;
    this.#cpuSpanMs = options.cpuSpanMs ?? CPU_SPAN_MS;
  }

  async tick(): Promise<void> {
    const { context, session } = this.#options;
    if (!(await session.isLeader('idle'))) {
      this.#samples.clear();
      return;
    }
    const sleepers = await listPossibleSleepers(context.db);
    const byHost = Map.groupBy(sleepers, ({ hostUrl }) => hostUrl);
    const samples = (await Promise.all([...byHost].map(([url, onHost]) => this.#sample(url, onHost)))).flat();
    this.#samples = new Map(samples);
    await this.#putIdleToSleep(sleepers);
  }

  /**
   * Measurements of the VMs of a host. An unreachable host keeps its previous ones, with an unknown
   * current share.
   */
  async #sample(url: string, sleepers: SleeperRow[]): Promise<[string, CpuSample][]> {
    const { hosts, log, stopping } = this.#options.context;
    try {
      const vms = await hosts.at(url).listVms({ signal: stopping });
      const atMs = performance.now();
      const cpuMs = new Map(vms.map((vm) => [vm.id, vm.status === 'running' ? vm.cpuMs : undefined]));
      this.#silentHosts.delete(url);
      return sleepers.flatMap(({ id }) => {
        const used = cpuMs.get(id);
        return used === undefined ? [] : [[id, this.#next(this.#samples.get(id), { atMs, cpuMs: used })]];
      });
    } catch (error) {
      if (!stopping.aborted && !this.#silentHosts.has(url))
        log.warn({ err: error, host: url }, 'could not query a host for the activity of its VMs');
      this.#silentHosts.add(url);
      return [];
    }
  }

  #next(before: CpuSample | undefined, { atMs, cpuMs }: { atMs: number; cpuMs: number }): CpuSample {
    // A new process has used less: the VM was asleep in between.
    if (before === undefined || cpuMs < before.cpuMs) return { atMs, cpuMs, share: null };
    const spanMs = atMs - before.atMs;
    return spanMs < this.#cpuSpanMs ? before : { atMs, cpuMs, share: (cpuMs - before.cpuMs) / spanMs };
  }

  async #putIdleToSleep(sleepers: SleeperRow[]): Promise<void> {
    const { stopping } = this.#options.context;
    const waiting = [...sleepers];
    const judgeNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined && !stopping.aborted; next = waiting.shift())
        await this.#putToSleepIfIdle(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, judgeNext));
  }

  async #putToSleepIfIdle(sleeper: SleeperRow): Promise<void> {
    const { context, lifecycle } = this.#options;
    try {
      const outcome = await judgeIdleness(
        { db: context.db, hosts: context.hosts, log: context.log, lifecycle },
        sleeper,
        this.#samples.get(sleeper.id)?.share ?? null,
      );
      if (outcome === 'idle') {
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

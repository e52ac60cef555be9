// Looks, on one replica, at every sandbox that may sleep by itself, and at the processor time of
// its machine: what it finds idle is put to sleep. Remembers nothing but the last look at each
// machine's processors; after a change of the leader nothing sleeps before there are two.
import type { IntentContext } from '../../services/sandboxes/intent.ts';
import { judgeIdleness } from '../../services/sandboxes/idle.ts';
import { listPossibleSleepers, type SleeperRow } from '../../store/sandboxes/activity-signals.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/** How often to look: a sandbox goes to sleep this much late. */
export const IDLE_EVERY_MS = 5_000;
/**
 * Shares of a processor are means over so long at least: an idle guest's own chores are bursts of a
 * second or two.
 */
const CPU_SPAN_MS = 30_000;
/** Transactions side by side; the pool serves requests too. */
const AT_ONCE = 4;

interface IdleWatchOptions {
  context: Pick<StepContext, 'db' | 'hosts' | 'log' | 'stopping'>;
  lifecycle: IntentContext['lifecycle'];
  session: Pick<ReplicaSession, 'leads'>;
  /** Replaces the span over which a share of a processor is taken. */
  cpuSpanMs?: number;
}

interface CpuLook {
  atMs: number;
  cpuMs: number;
  /** Of one host CPU, over the span that ended with this look; null for the first. */
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

  /** One look around. */
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
   * The looks at the machines of one host; those before where it cannot be asked, with nothing
   * known of this moment.
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
        log.warn({ err: error, host: url }, 'a host cannot be asked who is at work');
      this.#silentHosts.add(url);
      return [];
    }
  }

  #next(before: CpuLook | undefined, { atMs, cpuMs }: { atMs: number; cpuMs: number }): CpuLook {
    // A new process has used less: it was asleep in between.
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
      if (verdict === 'idle')
        context.log.info({ sandboxId: sleeper.id, idleSince: sleeper.lastActiveAt }, 'an idle sandbox goes to sleep');
    } catch (error) {
      // One that cannot be put to sleep must not keep the others awake.
      if (!context.stopping.aborted)
        context.log.warn({ err: error, sandboxId: sleeper.id }, 'could not put an idle sandbox to sleep');
    }
  }
}

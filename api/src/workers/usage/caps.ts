// Enforces machine hour caps, on a single replica: warns, and puts sandboxes to sleep after the
// grace period. All state is in the database, so a change of the leader neither loses nor repeats
// an action.
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import { recordCapUsage, sleepBeyondCap, warnOfCap } from '../../services/sandboxes/cap-enforcement.ts';
import type { IntentContext } from '../../services/sandboxes/intent.ts';
import { capUsagesAt, type EnforcedCapUsage } from '../../services/usage/caps.ts';
import { readClock } from '../../store/database/clock.ts';
import type { Database } from '../../store/database/schema.ts';
import { clearCapReached, listCapsReached, listCapped, scopeId, type CapReached } from '../../store/usage/caps.ts';
import { crashPoint } from '../steps/crash-point.ts';
import type { ReplicaSession } from '../steps/replica-session.ts';
import type { StepContext } from '../steps/step-context.ts';

/**
 * Poll interval. Usage continues meanwhile: a cap may be exceeded by this, the grace period and the
 * commit.
 */
export const USAGE_CAPS_EVERY_MS = 1_000;
/** Orgs checked concurrently; the pool also serves requests. */
const AT_ONCE = 4;

interface CapWatchOptions {
  context: Pick<StepContext, 'db' | 'log' | 'stopping'>;
  plans: Plans;
  lifecycle: IntentContext['lifecycle'];
  session: Pick<ReplicaSession, 'isLeader'>;
  /** Time between reaching a cap and putting sandboxes to sleep. */
  graceSeconds: number;
  /** Replaces the database's clock. */
  readNow?: (db: Database) => Promise<Date>;
}

export class CapWatch {
  readonly #options: CapWatchOptions;
  readonly #readNow: (db: Database) => Promise<Date>;
  /**
   * Projects by org with awake VMs at the last pass: their usage since then counts, even if they
   * sleep now.
   */
  #before = new Map<string, Set<string>>();
  /** A new leader does not know what the former had left to check. */
  #isFirst = true;

  constructor(options: CapWatchOptions) {
    this.#options = options;
    this.#readNow = options.readNow ?? readClock;
  }

  async tick(): Promise<void> {
    const { context, session, plans } = this.#options;
    if (!(await session.isLeader('usage-caps'))) {
      this.#before.clear();
      this.#isFirst = true;
      return;
    }
    const cappedPlans = [...plans.values()].filter((plan) => plan.includedMachineHours !== null).map(({ id }) => id);
    const awake = new Map<string, Set<string>>();
    const which = this.#isFirst ? 'all' : 'awake';
    for (const { orgId, projectId } of await listCapped(context.db, cappedPlans, which)) add(awake, orgId, projectId);
    const reached = await listCapsReached(context.db);
    const looked = new Map([...awake].map(([orgId, projectIds]) => [orgId, new Set(projectIds)]));
    for (const [orgId, projectIds] of this.#before) for (const projectId of projectIds) add(looked, orgId, projectId);
    for (const { orgId, projectId } of reached.values()) add(looked, orgId, projectId);
    this.#before = awake;
    this.#isFirst = false;

    const waiting = [...looked];
    const lookNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined && !context.stopping.aborted; next = waiting.shift())
        await this.#checkOrg(next[0], [...next[1]], reached);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lookNext));
  }

  /** A failure in one org must not affect the caps of others. */
  async #checkOrg(orgId: string, projectIds: string[], reached: ReadonlyMap<string, CapReached>): Promise<void> {
    const { context, plans } = this.#options;
    try {
      const at = await this.#readNow(context.db);
      const standings = await capUsagesAt(context.db, plans, { orgId, projectIds }, at);
      const capped = new Set(standings.map(({ scope }) => scopeId(scope)));
      for (const [scope, known] of reached)
        if (known.orgId === orgId && !capped.has(scope)) await clearCapReached(context.db, scope);
      for (const capUsage of standings) await this.#checkCap(capUsage, reached.get(scopeId(capUsage.scope)), at);
    } catch (error) {
      if (!context.stopping.aborted)
        context.log.warn({ err: error, orgId }, 'could not check the caps of an org; the next scan retries');
      for (const projectId of projectIds) add(this.#before, orgId, projectId);
    }
  }

  async #checkCap(capUsage: EnforcedCapUsage, known: CapReached | undefined, at: Date): Promise<void> {
    const { context, plans, lifecycle, graceSeconds } = this.#options;
    const { scope, cap } = capUsage;
    for (const percent of await warnOfCap(context.db, capUsage, graceSeconds)) {
      context.log.info({ ...scope, cap, percent }, 'warned about a cap on machine hours');
      crashPoint('caps:warned');
    }
    const since = await recordCapUsage(context.db, capUsage, known, at);
    if (since === null) return;
    crashPoint('caps:reached-noted');
    if (at.getTime() - since.getTime() < graceSeconds * 1_000) return;
    await sleepBeyondCap({ db: context.db, lifecycle, plans, readNow: this.#readNow }, capUsage, at, (sandboxId) => {
      context.log.info({ ...scope, cap, sandboxId }, 'putting a sandbox beyond its cap on machine hours to sleep');
      crashPoint('caps:slept');
    });
  }
}

function add(projects: Map<string, Set<string>>, orgId: string, projectId: string | null): void {
  const known = projects.get(orgId) ?? new Set<string>();
  projects.set(orgId, known);
  if (projectId !== null) known.add(projectId);
}

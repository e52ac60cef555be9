// Plans of orgs for limits that are checked with every request: cached, so that a request costs no
// query.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { planOrNull } from '../../rules/billing/plan-catalogue.ts';
import { findSubscription } from '../../store/billing/subscriptions.ts';
import type { ServiceContext } from '../context/context.ts';

/** Time after which a changed plan applies. */
const CACHED_MS = 60_000;
/** Beyond it the oldest entry is dropped. */
const MAX_CACHED = 100_000;

interface Entry {
  readAtMs: number;
  plan: Promise<Plan | null>;
}

export class OrgPlans {
  readonly #context: Pick<ServiceContext, 'db' | 'plans'>;
  readonly #now: () => number;
  /** Ordered by the time of their query. */
  readonly #entries = new Map<string, Entry>();
  /** Without a limit in the catalogue there is nothing to look up. */
  readonly #isNeeded: boolean;

  constructor(context: Pick<ServiceContext, 'db' | 'plans'>, now: () => number = () => performance.now()) {
    this.#context = context;
    this.#now = now;
    this.#isNeeded = [...context.plans.values()].some((plan) => plan.requestsPerMinute !== null);
  }

  /**
   * The org's plan as of the last minute; null if none is in force, or no plan limits requests.
   */
  async find(orgId: string): Promise<Plan | null> {
    if (!this.#isNeeded) return null;
    const cached = this.#entries.get(orgId);
    if (cached !== undefined && this.#now() - cached.readAtMs < CACHED_MS) return await cached.plan;
    const entry = { readAtMs: this.#now(), plan: this.#read(orgId) };
    this.#entries.delete(orgId);
    this.#entries.set(orgId, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_CACHED) break;
      this.#entries.delete(oldest);
    }
    try {
      return await entry.plan;
    } catch (error) {
      if (this.#entries.get(orgId) === entry) this.#entries.delete(orgId);
      throw error;
    }
  }

  async #read(orgId: string): Promise<Plan | null> {
    return planOrNull(this.#context.plans, await findSubscription(this.#context.db, orgId));
  }
}

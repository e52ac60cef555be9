// Machine hours and caps of an org.
import type { Calls } from './calls/calls.ts';
import type {
  EndUserUsage,
  GetDailyUsageData,
  GetDailyUsageResult,
  OrgUsage,
  Subscription,
  UpdateUsageGuardrailsData,
  UsageGuardrails,
} from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { EndUserUsage, OrgUsage, Subscription, UsageGuardrails };

/** Changes of the caps; omitted fields stay. */
export type UsageGuardrailsChanges = UpdateUsageGuardrailsData['body'];

export type DayUsage = GetDailyUsageResult['days'][number];

export interface EndUsersUsage {
  periodStartsAt: string;
  periodEndsAt: string;
  /** Highest usage first. */
  endUsers: EndUserUsage[];
}

export class Usage {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Usage of the org, a project or an end user in this billing period. */
  async get({
    orgId,
    signal,
    timeoutMs,
    ...query
  }: OrgCallOptions & { projectId?: string; endUserId?: string } = {}): Promise<OrgUsage> {
    const { raw, with: set } = this.#calls;
    const path = { orgId: await this.#calls.orgId(orgId) };
    return await raw.getOrgUsage({ path, query, ...set({ signal, timeoutMs }) });
  }

  /** Usage of each end user in this billing period. */
  async endUsers({ orgId, ...options }: OrgCallOptions = {}): Promise<EndUsersUsage> {
    const { raw, with: set } = this.#calls;
    return await raw.getEndUserUsage({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) });
  }

  /** Usage by day in UTC, oldest first, up to today; `days`: 1 to 92, by default 31. */
  async daily(
    query: NonNullable<GetDailyUsageData['query']> = {},
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<DayUsage[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.getDailyUsage({ path: { orgId: await this.#calls.orgId(orgId) }, query, ...set(options) })).days;
  }

  /** Plans that can be bought; none where no payments are collected. */
  async plans({ orgId, ...options }: OrgCallOptions = {}): Promise<Subscription['plan'][]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listPlans({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) })).plans;
  }

  /** Plan and billing period of the org. */
  async subscription({ orgId, ...options }: OrgCallOptions = {}): Promise<Subscription> {
    const { raw, with: set } = this.#calls;
    return (await raw.getSubscription({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) }))
      .subscription;
  }

  /** Sets the org's cap and overage. Requires a session token of an org admin. */
  async setGuardrails(
    changes: UsageGuardrailsChanges,
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<UsageGuardrails> {
    const { raw, with: set } = this.#calls;
    return (
      await raw.updateUsageGuardrails({
        path: { orgId: await this.#calls.orgId(orgId) },
        body: changes,
        ...set(options),
      })
    ).usageGuardrails;
  }

  /**
   * Sets a project's cap in machine hours per billing period; null removes it. Requires a session
   * token of an org admin.
   */
  async setProjectLimit(
    projectId: string,
    machineHours: number | null,
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<number | null> {
    const { raw, with: set } = this.#calls;
    const call = {
      path: { orgId: await this.#calls.orgId(orgId), projectId },
      body: { sandboxMachineHourLimit: machineHours },
      ...set(options),
    };
    return (await raw.updateProjectUsageGuardrails(call)).usageGuardrails.sandboxMachineHourLimit;
  }
}

// Machine hours of an org: what was used, and the caps on it.
import type { Calls } from './calls.ts';
import type {
  EndUserUsage,
  OrgUsage,
  Subscription,
  UpdateUsageGuardrailsData,
  UsageGuardrails,
} from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { EndUserUsage, OrgUsage, Subscription, UsageGuardrails };

/** What is to be changed of the caps; what is missing stays. */
export type UsageGuardrailsChanges = UpdateUsageGuardrailsData['body'];

export interface EndUsersUsage {
  periodStartsAt: string;
  periodEndsAt: string;
  /** Most hours first. */
  endUsers: EndUserUsage[];
}

export class Usage {
  readonly #calls: Calls;

  /** Made by the client. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Of the present billing period: of the org, or of one of its projects or end users. */
  async get({
    orgId,
    projectId,
    endUserId,
    ...options
  }: OrgCallOptions & { projectId?: string; endUserId?: string } = {}): Promise<OrgUsage> {
    const { raw, with: set } = this.#calls;
    const query = {
      ...(projectId === undefined ? {} : { projectId }),
      ...(endUserId === undefined ? {} : { endUserId }),
    };
    return await raw.getOrgUsage({ path: { orgId: await this.#calls.orgId(orgId) }, query, ...set(options) });
  }

  /** Of each end user in the present billing period. */
  async endUsers({ orgId, ...options }: OrgCallOptions = {}): Promise<EndUsersUsage> {
    const { raw, with: set } = this.#calls;
    return await raw.getEndUserUsage({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) });
  }

  /** The plan of the org, and its billing period. */
  async subscription({ orgId, ...options }: OrgCallOptions = {}): Promise<Subscription> {
    const { raw, with: set } = this.#calls;
    return (await raw.getSubscription({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) }))
      .subscription;
  }

  /**
   * Sets the org's cap, and whether work goes on beyond it. Needs a session token of an org admin.
   */
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
   * Sets a project's own cap in machine hours a billing period; null removes it. Needs a session
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

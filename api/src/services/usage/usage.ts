// An org's use in its billing period, for display. Reads sums without making any; caps.ts enforces
// caps.
import type { EndUserUsage, OrgUsage } from '@berth/contract/usage/usage.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { estimatedCostUsd, machineHours, toMillionths } from '../../rules/usage/machine-cost.ts';
import { uncappedAlert, usageAlertOf } from '../../rules/usage/alert.ts';
import { capMs, effectiveCap, effectiveProjectCap, type CapScope } from '../../rules/usage/caps.ts';
import { readClock } from '../../store/database/clock.ts';
import type { Database } from '../../store/database/schema.ts';
import { findProjectOrDeleted } from '../../store/orgs/projects.ts';
import { usedByDay } from '../../store/usage/days.ts';
import { usageByEndUser, usedParts } from '../../store/usage/sums.ts';
import { requirePeriod, type CurrentPeriod } from '../billing/period.ts';
import type { ServiceContext } from '../context/context.ts';
import { guardrailsOf } from './caps.ts';

type UsageContext = Pick<ServiceContext, 'db' | 'plans' | 'settings'>;

interface UsageFilter {
  projectId?: string | undefined;
  endUserId?: string | undefined;
}

/**
 * Use in the current period: of the org; of one project (deleted or not), with its cap; of one end
 * user, with the cap of the org or project. Throws `no_active_plan`, or `unknown_project` for a
 * project the org never had.
 */
export async function orgUsage(
  context: UsageContext,
  orgId: string,
  { projectId, endUserId }: UsageFilter,
): Promise<OrgUsage> {
  const { db, plans } = context;
  const at = await readClock(db);
  const period = await requirePeriod(db, plans, orgId, at);
  const window = { orgId, from: period.startsAt, to: period.endsAt, at };
  const { cap, override, scope, stops } = await capOf(context, period, projectId);
  const { orgMs, scopeMs, askedMs } = await usedParts(db, { ...window, projectId, endUserId });
  const { plan, subscription } = period;
  const includedMs = plan.includedMachineHours === null ? null : capMs(plan.includedMachineHours);
  const overageHours = machineHours(includedMs === null ? 0 : Math.max(0, orgMs - includedMs));
  const capUsage = { scope, usedMs: scopeMs, period };
  return {
    includedMachineHours: plan.includedMachineHours,
    sandboxMachineHourLimit: cap,
    sandboxMachineHourLimitOverride: override,
    sandboxOverageEnabled: subscription.overage_enabled,
    usedMachineHours: machineHours(askedMs),
    remainingMachineHours: cap === null ? null : machineHours(Math.max(0, capMs(cap) - scopeMs)),
    usageAlert: cap === null ? uncappedAlert(scopeMs, scope.kind) : usageAlertOf({ ...capUsage, cap }, stops),
    periodStartsAt: period.startsAt.toISOString(),
    periodEndsAt: period.endsAt.toISOString(),
    overageMachineHours: overageHours,
    estimatedOverageUsd:
      plan.overageUsdPerMachineHour === null ? null : toMillionths(overageHours * plan.overageUsdPerMachineHour),
  };
}

interface ScopedCap {
  scope: CapScope;
  cap: number | null;
  /** Cap set for the scope. */
  override: number | null;
  /** Grace period before work stops at the cap; null: work continues. */
  stops: { graceSeconds: number } | null;
}

async function capOf(
  { db, settings }: UsageContext,
  period: CurrentPeriod,
  projectId: string | undefined,
): Promise<ScopedCap> {
  const { org_id: orgId } = period.subscription;
  const guardrails = guardrailsOf(period);
  const grace = { graceSeconds: settings.capGraceSeconds };
  if (projectId === undefined) {
    const { limit, overageEnabled } = guardrails;
    return {
      scope: { kind: 'org', orgId },
      cap: effectiveCap(guardrails),
      override: limit,
      stops: overageEnabled ? null : grace,
    };
  }
  const { sandbox_machine_hour_limit: limit } = await projectOf(db, orgId, projectId);
  return {
    scope: { kind: 'project', orgId, projectId },
    cap: effectiveProjectCap(limit, guardrails),
    override: limit,
    stops: grace,
  };
}

/** The project, deleted or not. Throws `unknown_project` for one the org never had. */
async function projectOf(db: Database, orgId: string, projectId: string) {
  const project = await findProjectOrDeleted(db, orgId, projectId);
  if (project === undefined) throw new CodedError('unknown_project', 'query.projectId is not a project of this org');
  return project;
}

/** Use of each of the last days in UTC, up to today. Throws `unknown_project`. */
export async function dailyUsage(
  { db }: Pick<UsageContext, 'db'>,
  orgId: string,
  days: number,
  filter: UsageFilter,
): Promise<{ date: string; machineHours: number }[]> {
  if (filter.projectId !== undefined) await projectOf(db, orgId, filter.projectId);
  const at = await readClock(db);
  const used = await usedByDay(db, { ...filter, orgId, days, at });
  return used.map(({ date, ms }) => ({ date, machineHours: machineHours(ms) }));
}

interface UsageByEndUser {
  periodStartsAt: string;
  periodEndsAt: string;
  endUsers: EndUserUsage[];
}

/** Use by end user in the current period, highest first, ties by id. Throws `no_active_plan`. */
export async function endUserUsage({ db, plans, settings }: UsageContext, orgId: string): Promise<UsageByEndUser> {
  const at = await readClock(db);
  const { startsAt, endsAt } = await requirePeriod(db, plans, orgId, at);
  const times = await usageByEndUser(db, { orgId, from: startsAt, to: endsAt, at });
  const ofEach = [...Map.groupBy(times, ({ endUserId }) => endUserId)].map(([endUserId, own]) => ({
    endUserId,
    ms: own.reduce((sum, { ms }) => sum + ms, 0),
    estimatedCogsUsd: estimatedCostUsd(own, settings.machineRates),
  }));
  ofEach.sort((one, other) => other.ms - one.ms || (one.endUserId < other.endUserId ? -1 : 1));
  return {
    periodStartsAt: startsAt.toISOString(),
    periodEndsAt: endsAt.toISOString(),
    endUsers: ofEach.map(({ endUserId, ms, estimatedCogsUsd }) => ({
      endUserId,
      machineHours: machineHours(ms),
      estimatedCogsUsd,
    })),
  };
}

// Compares the machine hours of an org and its projects with their caps. Used by every transaction
// that creates or wakes a VM, and by enforcement (services/sandboxes/cap-enforcement.ts).
//
// Lock order in such a transaction: the project and sandbox rows, the subscription row, the host
// row.
import { CodedError } from '../../rules/coded-error.ts';
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import {
  effectiveCap,
  enforcedCap,
  isAtCap,
  requireBelowCap,
  type CapScope,
  type CapUsage,
  type OrgGuardrails,
} from '../../rules/usage/caps.ts';
import { readClock } from '../../store/database/clock.ts';
import type { Database, DatabaseTransaction, SubscriptionRow } from '../../store/database/schema.ts';
import { findSubscription, lockSubscription } from '../../store/billing/subscriptions.ts';
import { findProjectLimits } from '../../store/usage/caps.ts';
import { usedByProjects, usedMs } from '../../store/usage/sums.ts';
import { periodOfSubscription } from '../billing/period.ts';
import { inForce } from '../billing/plans.ts';

type PlanInForce = ReturnType<typeof inForce>;

/** An org's guardrails, from its subscription and plan. */
export function guardrailsOf({ plan, subscription }: PlanInForce): OrgGuardrails {
  return { plan, limit: subscription.machine_hour_limit, overageEnabled: subscription.overage_enabled };
}

/** A cap in force. `enforced`: work stops at it. */
interface Cap {
  scope: CapScope;
  cap: number;
  enforced: boolean;
}

/** A scope's use compared with its cap. `enforced`: work stops at the cap. */
export type EnforcedCapUsage = CapUsage & Pick<Cap, 'enforced'>;

/**
 * Throws `machine_hour_limit` if the org or the project is at its cap, or `no_active_plan`. With an
 * enforced cap, locks the org's subscription until the transaction ends. The lock is exclusive:
 * overlapping creates with a shared lock would starve a change of the cap.
 */
export async function requireMachineHours(
  { plans }: { plans: Plans },
  trx: DatabaseTransaction,
  { orgId, projectId }: { orgId: string; projectId: string },
): Promise<void> {
  // Without an enforced cap nothing is locked or summed.
  const seen = await capsOf(trx, inForce(plans, await findSubscription(trx, orgId)), [projectId]);
  if (!seen.some(({ enforced }) => enforced)) return;
  const current = inForce(plans, await lockSubscription(trx, orgId));
  const at = await readClock(trx);
  const enforced = (await capsOf(trx, current, [projectId])).filter((cap) => cap.enforced);
  for (const capUsage of await capUsagesOf(trx, enforced, current.subscription, at)) requireBelowCap(capUsage);
}

/** Standings of the org and of the given projects with a cap; none without an active plan. */
export async function capUsagesAt(
  db: Database,
  plans: Plans,
  { orgId, projectIds }: { orgId: string; projectIds: readonly string[] },
  at: Date,
): Promise<EnforcedCapUsage[]> {
  const current = inForceOrNull(plans, await findSubscription(db, orgId));
  if (current === null) return [];
  return await capUsagesOf(db, await capsOf(db, current, projectIds), current.subscription, at);
}

/**
 * True if the standing still stops work. Used time cannot decrease within a period, so only period
 * and cap are checked again. Locks the org's subscription until the transaction ends.
 */
export async function isStillAtCap(
  trx: DatabaseTransaction,
  plans: Plans,
  found: CapUsage,
  at: Date,
): Promise<boolean> {
  const { scope } = found;
  const current = inForceOrNull(plans, await lockSubscription(trx, scope.orgId));
  if (
    current === null ||
    periodOfSubscription(current.subscription, at).startsAt.getTime() !== found.period.startsAt.getTime()
  )
    return false;
  const caps = await capsOf(trx, current, scope.kind === 'project' ? [scope.projectId] : []);
  return caps.some(
    ({ scope: { kind }, cap, enforced }) => kind === scope.kind && enforced && isAtCap(found.usedMs, cap),
  );
}

/** The org's cap first, then the projects'. */
async function capsOf(db: Database, current: PlanInForce, projectIds: readonly string[]): Promise<Cap[]> {
  const { org_id: orgId } = current.subscription;
  const guardrails = guardrailsOf(current);
  const cap = effectiveCap(guardrails);
  const ofOrg: Cap[] =
    cap === null ? [] : [{ scope: { kind: 'org', orgId }, cap, enforced: enforcedCap(guardrails) !== null }];
  const limits = await findProjectLimits(db, projectIds);
  return [
    ...ofOrg,
    ...[...limits].map(([projectId, limit]): Cap => ({
      scope: { kind: 'project', orgId, projectId },
      cap: limit,
      enforced: true,
    })),
  ];
}

/** Standings in the order of the caps, from one statement. */
async function capUsagesOf(
  db: Database,
  caps: readonly Cap[],
  subscription: SubscriptionRow,
  at: Date,
): Promise<EnforcedCapUsage[]> {
  const [first, ...others] = caps;
  if (first === undefined) return [];
  const period = periodOfSubscription(subscription, at);
  const window = { orgId: subscription.org_id, from: period.startsAt, to: period.endsAt, at };
  // Reads less for one project than for all.
  if (others.length === 0)
    return [{ ...first, period, usedMs: await usedMs(db, { ...window, projectId: projectOf(first) }) }];
  const { orgMs, projectMs } = await usedByProjects(
    db,
    window,
    caps.flatMap((cap) => projectOf(cap) ?? []),
  );
  return caps.map((cap) => ({ ...cap, period, usedMs: projectMs.get(projectOf(cap) ?? '') ?? orgMs }));
}

function projectOf({ scope }: Cap): string | undefined {
  return scope.kind === 'project' ? scope.projectId : undefined;
}

function inForceOrNull(plans: Plans, subscription: SubscriptionRow | undefined): PlanInForce | null {
  try {
    return inForce(plans, subscription);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'no_active_plan') return null;
    throw error;
  }
}

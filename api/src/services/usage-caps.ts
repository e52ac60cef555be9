// Caps on machine hours: holds what an org and its projects have used against their caps. Whatever makes or wakes a machine asks here, in its own
// transaction, and so does the watch over what is awake beyond a cap (services/cap-enforcement.ts).
//
// Order of locks in such a transaction: the project's row and the sandbox's, then the subscription's, then the host's.
import { CodedError } from '../rules/coded-error.ts';
import type { Plans } from '../rules/plan-catalogue.ts';
import {
  effectiveCap,
  enforcedCap,
  isAtCap,
  requireBelowCap,
  type CapScope,
  type CapStanding,
  type OrgGuardrails,
} from '../rules/usage-caps.ts';
import { readClock } from '../store/clock.ts';
import type { Database, DatabaseTransaction, SubscriptionRow } from '../store/schema.ts';
import { findSubscription, lockSubscription } from '../store/subscriptions.ts';
import { findProjectLimits } from '../store/usage-caps.ts';
import { usedMs } from '../store/usage-sums.ts';
import { periodOfSubscription } from './billing-period.ts';
import { inForce } from './plans.ts';

type PlanInForce = ReturnType<typeof inForce>;

/** The guardrails of an org, from its subscription and plan. */
export function guardrailsOf({ plan, subscription }: PlanInForce): OrgGuardrails {
  return { plan, limit: subscription.machine_hour_limit, overageEnabled: subscription.overage_enabled };
}

/** A cap in force, and whether work stops at it. */
interface Cap {
  scope: CapScope;
  cap: number;
  enforced: boolean;
}

/** How a scope stands to its cap, and whether work stops at it. */
export type EnforcedStanding = CapStanding & Pick<Cap, 'enforced'>;

/**
 * Throws `machine_hour_limit` when the org or the project is at its cap, or `no_active_plan`. Where there is a cap, the org's subscription stays
 * locked until the transaction ends, which must commit what the room is for. Not for sharing: a change of the cap would wait for ever for creates that overlap.
 */
export async function requireMachineHours(
  { plans }: { plans: Plans },
  trx: DatabaseTransaction,
  { orgId, projectId }: { orgId: string; projectId: string },
): Promise<void> {
  // Without a cap that is enforced nothing is held and nothing summed.
  const seen = await capsOf(trx, inForce(plans, await findSubscription(trx, orgId)), [projectId]);
  if (!seen.some(({ enforced }) => enforced)) return;
  const held = inForce(plans, await lockSubscription(trx, orgId));
  const at = await readClock(trx);
  for (const cap of await capsOf(trx, held, [projectId])) {
    if (cap.enforced) requireBelowCap(await standingOf(trx, cap, held.subscription, at));
  }
}

/** How the org, and those of the projects that have a cap, stand to their caps at an instant; none without an active plan. */
export async function standingsAt(
  db: Database,
  plans: Plans,
  { orgId, projectIds }: { orgId: string; projectIds: readonly string[] },
  at: Date,
): Promise<EnforcedStanding[]> {
  const current = inForceOrNull(plans, await findSubscription(db, orgId));
  if (current === null) return [];
  const standings: EnforcedStanding[] = [];
  for (const cap of await capsOf(db, current, projectIds)) standings.push(await standingOf(db, cap, current.subscription, at));
  return standings;
}

/**
 * Whether work still stops for what was found: within a period, machine time that is used stays used, so only the period and the cap are asked again. The org's
 * subscription stays locked until the transaction ends.
 */
export async function isStillAtCap(trx: DatabaseTransaction, plans: Plans, found: CapStanding, at: Date): Promise<boolean> {
  const { scope } = found;
  const current = inForceOrNull(plans, await lockSubscription(trx, scope.orgId));
  if (current === null || periodOfSubscription(current.subscription, at).startsAt.getTime() !== found.period.startsAt.getTime())
    return false;
  const caps = await capsOf(trx, current, scope.kind === 'project' ? [scope.projectId] : []);
  return caps.some(({ scope: { kind }, cap, enforced }) => kind === scope.kind && enforced && isAtCap(found.usedMs, cap));
}

/** The org's cap first, then the projects'. */
async function capsOf(db: Database, current: PlanInForce, projectIds: readonly string[]): Promise<Cap[]> {
  const { org_id: orgId } = current.subscription;
  const guardrails = guardrailsOf(current);
  const cap = effectiveCap(guardrails);
  const ofOrg: Cap[] = cap === null ? [] : [{ scope: { kind: 'org', orgId }, cap, enforced: enforcedCap(guardrails) !== null }];
  const limits = await findProjectLimits(db, projectIds);
  return [
    ...ofOrg,
    ...[...limits].map(([projectId, limit]): Cap => ({ scope: { kind: 'project', orgId, projectId }, cap: limit, enforced: true })),
  ];
}

async function standingOf(db: Database, { scope, cap, enforced }: Cap, subscription: SubscriptionRow, at: Date): Promise<EnforcedStanding> {
  const period = periodOfSubscription(subscription, at);
  const { orgId } = scope;
  const projectId = scope.kind === 'project' ? scope.projectId : undefined;
  return { scope, cap, enforced, period, usedMs: await usedMs(db, { orgId, projectId, from: period.startsAt, to: period.endsAt, at }) };
}

function inForceOrNull(plans: Plans, subscription: SubscriptionRow | undefined): PlanInForce | null {
  try {
    return inForce(plans, subscription);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'no_active_plan') return null;
    throw error;
  }
}

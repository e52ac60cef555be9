// Enforces caps on machine hours per scope: warnings in the activity feed, a grace period, then
// sleep of awake sandboxes. Applies rules/usage/caps.ts to the standings that workers/usage/caps.ts
// collects.
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import {
  describeCapReached,
  describeWarning,
  inOrderOfSleep,
  isAtCap,
  warningsDue,
  type CapUsage,
  type WarningPercent,
} from '../../rules/usage/caps.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import type { Database } from '../../store/database/schema.ts';
import {
  clearCapReached,
  listAwakeIn,
  recordCapReached,
  recordCapWarning,
  scopeId,
  type CapReached,
} from '../../store/usage/caps.ts';
import type { IntentContext } from './intent.ts';
import { requestSleep } from './sleep.ts';
import { isStillAtCap, type EnforcedCapUsage } from '../usage/caps.ts';

const HOUR_MS = 3_600_000;
/** Concurrent transactions; the pool also serves requests. */
const AT_ONCE = 4;
const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

/** Warns once about each reached share of the cap. Resolves with the new warnings' shares. */
export async function warnOfCap(
  db: Database,
  capUsage: EnforcedCapUsage,
  graceSeconds: number,
): Promise<WarningPercent[]> {
  const due = warningsDue(capUsage.usedMs, capUsage.cap);
  const given: WarningPercent[] = [];
  for (const percent of due) {
    const isNew = await db.transaction().execute(async (trx) => {
      if (!(await recordCapWarning(trx, capUsage, percent))) return false;
      await insertActivity(trx, {
        orgId: capUsage.scope.orgId,
        projectId: capUsage.scope.kind === 'project' ? capUsage.scope.projectId : undefined,
        actor: SYSTEM,
        kind: 'usage_cap_warning',
        details: {
          percent,
          ...detailsOf(capUsage),
          reason: describeWarning(capUsage, percent, capUsage.enforced ? { graceSeconds } : null),
        },
      });
      return true;
    });
    if (isNew) given.push(percent);
  }
  return given;
}

/**
 * Records since when the scope has been at an enforced cap; `known` is the current record. Resolves
 * with that instant, or null if work does not stop.
 */
export async function recordCapUsage(
  db: Database,
  capUsage: EnforcedCapUsage,
  known: CapReached | undefined,
  at: Date,
): Promise<Date | null> {
  if (!capUsage.enforced || !isAtCap(capUsage.usedMs, capUsage.cap)) {
    if (known !== undefined) await clearCapReached(db, scopeId(capUsage.scope));
    return null;
  }
  const isSame =
    known?.capHours === capUsage.cap && known.periodStartsAt.getTime() === capUsage.period.startsAt.getTime();
  return isSame ? known.since : await recordCapReached(db, capUsage, at);
}

interface EnforcementContext extends IntentContext {
  plans: Plans;
  /** Clock by which machine time is metered. */
  readNow: (db: Database) => Promise<Date>;
}

/**
 * Puts the scope's awake sandboxes to sleep: first `sleep_resume` and ephemeral sandboxes (which
 * end), then `always_on` ones. Each has a transaction that checks the cap again: once a raise is
 * acknowledged, nothing more is put to sleep. Calls `slept` after each. Rejects after a turn with
 * failures; the turn's other sandboxes are done.
 */
export async function sleepBeyondCap(
  context: EnforcementContext,
  capUsage: EnforcedCapUsage,
  at: Date,
  slept: (sandboxId: string) => void,
): Promise<void> {
  for (const turn of inOrderOfSleep(await listAwakeIn(context.db, capUsage.scope), at)) {
    const failures: unknown[] = [];
    const waiting = turn.map(({ id }) => id);
    const sleepNext = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        try {
          if (await sleepOne(context, capUsage, id)) slept(id);
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sleepNext));
    // A failed turn stops the next.
    if (failures.length > 0)
      throw new AggregateError(failures, `${failures.length} sandboxes beyond a cap could not be put to sleep`);
  }
}

async function sleepOne(context: EnforcementContext, capUsage: EnforcedCapUsage, sandboxId: string): Promise<boolean> {
  let isAsked = false;
  await requestSleep(context, SYSTEM, sandboxId, {
    wanted: async (_, trx) => {
      isAsked = await isStillAtCap(trx, context.plans, capUsage, await context.readNow(trx));
      return isAsked;
    },
    details: { ...detailsOf(capUsage), reason: { code: 'machine_hour_limit', message: describeCapReached(capUsage) } },
  });
  return isAsked;
}

/** Machine-readable details of a cap in the feed. */
function detailsOf({
  scope,
  cap,
  usedMs,
  period,
  enforced,
}: CapUsage & { enforced: boolean }): Record<string, unknown> {
  return {
    capScope: scope.kind,
    capScopeId: scopeId(scope),
    capMachineHours: cap,
    usedMachineHours: usedMs / HOUR_MS,
    overageEnabled: !enforced,
    periodStartsAt: period.startsAt.toISOString(),
    periodEndsAt: period.endsAt.toISOString(),
  };
}

// What becomes of a scope by how it stands to its cap on machine hours: warnings in the activity
// feed, a time of grace, and then sleep for what is awake. Holds the rules (rules/usage-caps.ts)
// against what is found, and does what they say; workers/usage-caps.ts finds.
import type { Plans } from '../../rules/billing/plan-catalogue.ts';
import {
  describeCapReached,
  describeWarning,
  inOrderOfSleep,
  isAtCap,
  warningsDue,
  type CapStanding,
  type WarningPercent,
} from '../../rules/usage/caps.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import type { Database } from '../../store/database/schema.ts';
import {
  forgetCapReached,
  listAwakeIn,
  noteCapReached,
  noteCapWarning,
  scopeId,
  type CapReached,
} from '../../store/usage/caps.ts';
import type { IntentContext } from './intent.ts';
import { requestSleep } from './sleep.ts';
import { isStillAtCap, type EnforcedStanding } from '../usage/caps.ts';

const HOUR_MS = 3_600_000;
/** Transactions side by side; the pool serves requests too. */
const AT_ONCE = 4;
const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

/**
 * Warns, once each, of the shares of the cap that are used. Resolves with those that were not
 * warned of before.
 */
export async function warnOfCap(
  db: Database,
  standing: EnforcedStanding,
  graceSeconds: number,
): Promise<WarningPercent[]> {
  const due = warningsDue(standing.usedMs, standing.cap);
  const given: WarningPercent[] = [];
  for (const percent of due) {
    const isNew = await db.transaction().execute(async (trx) => {
      if (!(await noteCapWarning(trx, standing, percent))) return false;
      await insertActivity(trx, {
        orgId: standing.scope.orgId,
        projectId: standing.scope.kind === 'project' ? standing.scope.projectId : undefined,
        actor: SYSTEM,
        kind: 'usage_cap_warning',
        details: {
          percent,
          ...detailsOf(standing),
          reason: describeWarning(standing, percent, standing.enforced ? { graceSeconds } : null),
        },
      });
      return true;
    });
    if (isNew) given.push(percent);
  }
  return given;
}

/**
 * Keeps account of since when the scope is at a cap that is enforced; `known` is what the account
 * has of it. Resolves with that instant, or null when work does not stop.
 */
export async function noteStanding(
  db: Database,
  standing: EnforcedStanding,
  known: CapReached | undefined,
  at: Date,
): Promise<Date | null> {
  if (!standing.enforced || !isAtCap(standing.usedMs, standing.cap)) {
    if (known !== undefined) await forgetCapReached(db, scopeId(standing.scope));
    return null;
  }
  const isSame =
    known?.capHours === standing.cap && known.periodStartsAt.getTime() === standing.period.startsAt.getTime();
  return isSame ? known.since : await noteCapReached(db, standing, at);
}

export interface EnforcementContext extends IntentContext {
  plans: Plans;
  /** The clock that machine time is counted by. */
  readNow: (db: Database) => Promise<Date>;
}

/**
 * Puts to sleep what is awake of the scope: `sleep_resume` sandboxes, ephemeral ones (which end),
 * and when all of those are asked, `always_on` ones. Each is asked by a transaction of its own in
 * which the cap is looked at again: from the answer to a raise on, nothing is put to sleep any
 * more. Calls `slept` after each. Rejects when one could not be asked; the others of its turn were.
 */
export async function sleepBeyondCap(
  context: EnforcementContext,
  standing: EnforcedStanding,
  at: Date,
  slept: (sandboxId: string) => void,
): Promise<void> {
  for (const turn of inOrderOfSleep(await listAwakeIn(context.db, standing.scope), at)) {
    const failures: unknown[] = [];
    const waiting = turn.map(({ id }) => id);
    const sleepNext = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        try {
          if (await sleepOne(context, standing, id)) slept(id);
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sleepNext));
    // The next turn waits for this one.
    if (failures.length > 0)
      throw new AggregateError(failures, `${failures.length} sandboxes beyond a cap could not be put to sleep`);
  }
}

async function sleepOne(context: EnforcementContext, standing: EnforcedStanding, sandboxId: string): Promise<boolean> {
  let isAsked = false;
  await requestSleep(context, SYSTEM, sandboxId, {
    wanted: async (_, trx) => {
      isAsked = await isStillAtCap(trx, context.plans, standing, await context.readNow(trx));
      return isAsked;
    },
    details: { ...detailsOf(standing), reason: { code: 'machine_hour_limit', message: describeCapReached(standing) } },
  });
  return isAsked;
}

/** What the feed has of a cap, for programs. */
function detailsOf({
  scope,
  cap,
  usedMs,
  period,
  enforced,
}: CapStanding & { enforced: boolean }): Record<string, unknown> {
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

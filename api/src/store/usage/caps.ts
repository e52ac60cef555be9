// Queries behind caps on machine hours: guardrails of orgs and projects, awake VMs, and the state
// of the cap watch. SQL only; rules/usage/caps.ts decides which cap applies.
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { CapScope, CapUsage, WarningPercent } from '../../rules/usage/caps.ts';
import type { Database, DatabaseTransaction, SandboxRow, SubscriptionRow } from '../database/schema.ts';

/** The caller holds the row lock. */
export async function writeGuardrails(
  trx: DatabaseTransaction,
  orgId: string,
  guardrails: { limit: number | null; overageEnabled: boolean },
): Promise<SubscriptionRow> {
  return await trx
    .updateTable('subscription')
    .set({ machine_hour_limit: guardrails.limit, overage_enabled: guardrails.overageEnabled })
    .where('org_id', '=', orgId)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Caps of the given projects by project id, without projects that have none. */
export async function findProjectLimits(db: Database, projectIds: readonly string[]): Promise<Map<string, number>> {
  if (projectIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('project')
    .select(['id', 'sandbox_machine_hour_limit as limit'])
    .where('id', 'in', projectIds)
    .where('deleted_at', 'is', null)
    .where('sandbox_machine_hour_limit', 'is not', null)
    .execute();
  return new Map(rows.flatMap(({ id, limit }) => (limit === null ? [] : [[id, limit]])));
}

/** A project whose machine time is capped by its own cap or its org's. */
interface CappedProject {
  orgId: string;
  projectId: string;
}

/** Capped projects, all or those with awake VMs. The given plans cap their orgs. */
export async function listCapped(
  db: Database,
  cappedPlans: readonly string[],
  which: 'awake' | 'all',
): Promise<CappedProject[]> {
  const looked =
    which === 'all'
      ? sql`select org_id, id as project_id from project where deleted_at is null`
      : sql`select distinct org_id, project_id from usage_interval where upper_inf(during)`;
  const { rows } = await sql<CappedProject>`
    select looked.org_id as "orgId", looked.project_id as "projectId"
    from (${looked}) looked
      join subscription on subscription.org_id = looked.org_id
      left join project on project.id = looked.project_id
    where subscription.machine_hour_limit is not null
      or (not subscription.overage_enabled and subscription.plan = any(${cappedPlans}::text[]))
      or project.sandbox_machine_hour_limit is not null`.execute(db);
  return rows;
}

/** A scope observed at its cap. */
export interface CapReached {
  orgId: string;
  projectId: string | null;
  periodStartsAt: Date;
  capHours: number;
  since: Date;
}

/** All reached caps by scope id. */
export async function listCapsReached(db: Database): Promise<Map<string, CapReached>> {
  const rows = await db
    .selectFrom('usage_cap_reached')
    .select([
      'scope_id',
      'org_id as orgId',
      'project_id as projectId',
      'period_starts_at as periodStartsAt',
      'cap_hours as capHours',
      'since',
    ])
    .execute();
  return new Map(rows.map(({ scope_id: scopeId, ...reached }) => [scopeId, reached]));
}

/** Records the scope as at its cap at `at`. Resolves with the first observation at this cap. */
export async function recordCapReached(db: Database, { scope, cap, period }: CapUsage, at: Date): Promise<Date> {
  const { rows } = await sql<{ since: Date }>`
    insert into usage_cap_reached as noted (scope_id, org_id, project_id, period_starts_at, cap_hours, since)
    values (${scopeId(scope)}, ${scope.orgId}, ${scope.kind === 'project' ? scope.projectId : null},
      ${period.startsAt}, ${cap}, ${at})
    on conflict (scope_id) do update set
      period_starts_at = excluded.period_starts_at,
      cap_hours = excluded.cap_hours,
      since = case
        when noted.period_starts_at = excluded.period_starts_at and noted.cap_hours = excluded.cap_hours
          then noted.since
        else excluded.since end
    returning since`.execute(db);
  return rows[0]?.since ?? at;
}

/** Clears the record: the scope is below its cap or has no enforced cap. */
export async function clearCapReached(db: Database, scope: string): Promise<void> {
  await db.deleteFrom('usage_cap_reached').where('scope_id', '=', scope).execute();
}

/** Records a warning; false if the same warning, with the same enforcement, was already sent. */
export async function recordCapWarning(
  db: Database,
  { scope, cap, period, enforced }: CapUsage & { enforced: boolean },
  percent: WarningPercent,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows: noted } = await db
    .insertInto('usage_cap_warning')
    .values({
      scope_id: scopeId(scope),
      period_starts_at: period.startsAt,
      cap_hours: cap,
      percent,
      enforced,
      org_id: scope.orgId,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return noted === 1n;
}

/** Deletes at most `limit` warnings of periods that ended over `ageDays` ago. Returns the count. */
export async function deleteCapWarnings(db: Database, ageDays: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from usage_cap_warning where ctid in (
      select ctid from usage_cap_warning where warned_at < now() - make_interval(days => ${ageDays})
      limit ${limit})`.execute(db);
  return Number(numAffectedRows ?? 0n);
}

/** An awake sandbox that a cap may stop. */
type AwakeSandbox = Pick<SandboxRow, 'id' | 'mode' | 'persistence_policy' | 'status_reason_code' | 'status_changed_at'>;

/** The scope's awake sandboxes, longest awake first. */
export async function listAwakeIn(db: Database, scope: CapScope): Promise<AwakeSandbox[]> {
  let query = db
    .selectFrom('sandbox')
    .select(['id', 'mode', 'persistence_policy', 'status_reason_code', 'status_changed_at'])
    .where('org_id', '=', scope.orgId)
    // Lets the planner use the partial index over living sandboxes.
    .where('status', '<>', 'deleted')
    .where('status', 'in', statusesThat('awake'));
  if (scope.kind === 'project') query = query.where('project_id', '=', scope.projectId);
  return await query.orderBy('status_changed_at').orderBy('id').execute();
}

/** Key of the scope's rows. */
export function scopeId(scope: CapScope): string {
  return scope.kind === 'org' ? scope.orgId : scope.projectId;
}

// Rows of durable steps, the work that outlives the process that began it. A row exists from the
// commit of the intent until the step is done. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

interface NewStep {
  /** Unique among unfinished steps: a second step with this id is the same step. */
  id: string;
  kind: string;
  /** Row whose org the step counts for. */
  subject: { table: 'sandbox' | 'invitation'; id: string };
  input: object;
}

export interface ClaimedStep {
  id: string;
  kind: string;
  orgId: string;
  input: unknown;
}

interface Claim {
  executorId: string;
  /** Kinds known to this process. A newer version's steps wait for a replica of that version. */
  kinds: readonly string[];
  /** Ids of the steps that this process is running. */
  running: readonly string[];
  /** Limit on concurrent steps per org and kind in this process. */
  perOrg: number;
  /** Kinds exempt from `perOrg`. */
  unlimitedKinds: readonly string[];
  /** Limit on the steps of this claim. */
  limit: number;
}

export async function insertStep(trx: DatabaseTransaction, { id, kind, subject, input }: NewStep): Promise<void> {
  await sql`
    insert into durable_step (id, kind, org_id, input)
    values (${id}, ${kind}, (select org_id from ${sql.table(subject.table)} where id = ${subject.id}),
      ${JSON.stringify(input)})
    on conflict (id) do nothing`.execute(trx);
}

/**
 * Claims waiting steps: each org's first, then each org's second, and so on; oldest first among
 * equals. Also reclaims a step recorded as claimed but not running here, lost between claim and
 * start. Claims of one process must not overlap.
 */
export async function claimSteps(db: Database, claim: Claim): Promise<ClaimedStep[]> {
  const { rows } = await sql<{ id: string; kind: string; org_id: string; input: unknown }>`
    with busy as (
      select org_id, kind, count(*) as count from durable_step
      where id = any(${claim.running}) group by org_id, kind
    ), startable as (
      select id, kind, enqueued_at,
        row_number() over (partition by org_id, kind order by enqueued_at, id) + coalesce(busy.count, 0) as place
      from durable_step step left join busy using (org_id, kind)
      where (claimed_by is null or claimed_by = ${claim.executorId})
        and kind = any(${claim.kinds}) and id <> all(${claim.running})
    ), chosen as (
      select step.id from durable_step step join startable using (id)
      where (step.claimed_by is null or step.claimed_by = ${claim.executorId})
        and (startable.place <= ${claim.perOrg} or startable.kind = any(${claim.unlimitedKinds}))
      order by startable.place, startable.enqueued_at, step.id
      limit ${claim.limit}
      for update of step skip locked
    )
    update durable_step step set claimed_by = ${claim.executorId} from chosen where step.id = chosen.id
    returning step.id, step.kind, step.org_id, step.input`.execute(db);
  return rows.map(({ org_id: orgId, ...row }) => ({ ...row, orgId }));
}

/** Deletes a finished step, whichever process claims it by now. */
export async function deleteStep(db: Database, id: string): Promise<void> {
  await db.deleteFrom('durable_step').where('id', '=', id).execute();
}

/** Makes an executor's steps claimable. */
export async function releaseSteps(db: Database, executorId: string): Promise<void> {
  await db.updateTable('durable_step').set({ claimed_by: null }).where('claimed_by', '=', executorId).execute();
}

/** Executors other than `ownId` recorded as running a step. */
export async function listOtherExecutors(db: Database, ownId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('durable_step')
    .select('claimed_by')
    .distinct()
    .where('claimed_by', 'is not', null)
    .where('claimed_by', '<>', ownId)
    .execute();
  return rows.flatMap(({ claimed_by: executorId }) => (executorId === null ? [] : [executorId]));
}

// Metered machine time: one interval per stretch of time that a sandbox's VM ran in one size. SQL
// only.
//
// Every instant counts as the millisecond that contains it (sums.ts), and is stored that way. An
// interval that would end at its start ends a microsecond later, because Postgres stores no bounds
// for an empty range. Started in the last microsecond of a millisecond, it would count as one.
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database, SandboxRow } from '../database/schema.ts';

/**
 * Opens an interval now, in the sandbox's current size. After a clock step backwards it starts
 * where the previous one ended. Postgres rejects overlapping intervals of a sandbox.
 */
export async function openUsageInterval(db: Database, sandbox: SandboxRow): Promise<void> {
  await insertInterval(db, sandbox, null);
}

/**
 * Closes the sandbox's open interval, if any: now, or at its VM's last proof of life, clamped to
 * [start, now]. After a clock step backwards the interval is empty, never negative.
 */
export async function closeUsageInterval(db: Database, sandboxId: string, at: Date | null = null): Promise<void> {
  await endInterval(db, sandboxId, at);
}

/**
 * Closes the open interval and opens the next in the sandbox's new size at the same instant: now,
 * or the expiry of an ephemeral sandbox that ends late. Time beyond the expiry is in no interval
 * (spec: "bills until the TTL").
 */
export async function splitUsageInterval(db: Database, sandbox: SandboxRow): Promise<void> {
  const endedAt = await endInterval(db, sandbox.id, sandbox.expires_at);
  if (endedAt === undefined)
    throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without an open usage interval`);
  await insertInterval(db, sandbox, endedAt);
}

/** Returned as text: a Date would lose the microsecond of an otherwise empty interval. */
async function endInterval(db: Database, sandboxId: string, at: Date | null): Promise<string | undefined> {
  const { rows } = await sql<{ ended_at: string }>`
    update usage_interval
    set during = tstzrange(
      lower(during),
      greatest(
        lower(during) + interval '1 microsecond',
        date_trunc('milliseconds', least(clock_timestamp(), coalesce(${at}::timestamptz, clock_timestamp())))))
    where sandbox_id = ${sandboxId} and upper_inf(during)
    returning upper(during)::text as ended_at`.execute(db);
  return rows[0]?.ended_at;
}

async function insertInterval(db: Database, sandbox: SandboxRow, from: string | null): Promise<void> {
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${sandbox.id}, ${sandbox.org_id}, ${sandbox.project_id}, ${sandbox.end_user_id},
      ${sandbox.allocated_vcpu}, ${sandbox.allocated_memory_gb}, ${sandbox.allocated_disk_gb},
      tstzrange(
        coalesce(${from}::timestamptz, greatest(
          date_trunc('milliseconds', clock_timestamp()),
          (select max(upper(during)) from usage_interval where sandbox_id = ${sandbox.id}))),
        null))`.execute(db);
}

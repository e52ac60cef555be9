// The metered machine time: one interval a stretch of time that a sandbox's machine ran in one
// size. SQL only.
//
// Every instant counts as the millisecond it lies in (usage-sums.ts), so that is what is written.
// An interval whose end would lie at its begin ends a microsecond later, as the database has
// nothing to say of an empty range; begun in the last microsecond of a millisecond, it would count
// as one.
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database, SandboxRow } from '../database/schema.ts';

/**
 * Opens an interval from now on, in the sandbox's present size; a clock that went back begins it
 * where the last one ended. The database refuses one that overlaps another of the same sandbox.
 */
export async function openUsageInterval(db: Database, sandbox: SandboxRow): Promise<void> {
  await insertInterval(db, sandbox, null);
}

/**
 * Ends the sandbox's open interval, if there is one: now, or at the last proof of life of its
 * machine. An instant outside of [its begin, now] is moved into it. A clock that went back makes it
 * empty, never negative.
 */
export async function closeUsageInterval(db: Database, sandboxId: string, at: Date | null = null): Promise<void> {
  await endInterval(db, sandboxId, at);
}

/**
 * Ends the open interval and begins the next in the sandbox's new size, at one instant: nothing
 * between them, nothing twice. That is now, or the expiry of an ephemeral sandbox whose end is
 * late: what it runs beyond is in no interval (spec: "bills until the TTL").
 */
export async function splitUsageInterval(db: Database, sandbox: SandboxRow): Promise<void> {
  const endedAt = await endInterval(db, sandbox.id, sandbox.expires_at);
  if (endedAt === undefined)
    throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without an open usage interval`);
  await insertInterval(db, sandbox, endedAt);
}

/** The instant as text: a Date would lose the microsecond of an interval that has nothing else. */
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
          date_trunc('milliseconds', clock_timestamp()), (select max(upper(during)) from usage_interval where sandbox_id = ${sandbox.id}))),
        null))`.execute(db);
}

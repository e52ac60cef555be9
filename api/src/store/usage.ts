// The metered machine time: one interval a stretch of time that a sandbox's machine ran in one size. SQL only.
import { sql } from 'kysely';
import { newId } from './ids.ts';
import type { Database, SandboxRow } from './schema.ts';

/** Opens an interval from now on, in the sandbox's present size. The database refuses one that overlaps another of the same sandbox. */
export async function openUsageInterval(db: Database, sandbox: SandboxRow): Promise<void> {
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${sandbox.id}, ${sandbox.org_id}, ${sandbox.project_id}, ${sandbox.end_user_id},
      ${sandbox.allocated_vcpu}, ${sandbox.allocated_memory_gb}, ${sandbox.allocated_disk_gb}, tstzrange(clock_timestamp(), null))`.execute(
    db,
  );
}

/** Ends the sandbox's open interval, if there is one. A clock that went back makes it empty, never negative. */
export async function closeUsageInterval(db: Database, sandboxId: string): Promise<void> {
  await sql`
    update usage_interval
    set during = tstzrange(lower(during), greatest(lower(during) + interval '1 microsecond', clock_timestamp()))
    where sandbox_id = ${sandboxId} and upper_inf(during)`.execute(db);
}

// Rows of metrics samples: resource use of sandboxes. SQL only; rules/metrics/recommendation.ts
// interprets them.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { sql } from 'kysely';
import { newId } from '../database/ids.ts';
import type { Database, DatabaseTransaction, MetricsSampleRow } from '../database/schema.ts';

interface NewMetricsSample {
  sandboxId: string;
  uptimeSeconds: number;
  cpuBusyMs: number;
  allocation: Allocation;
  /** Fractions of the allocation, 0 to 1. */
  cpuUsed: number | null;
  memoryUsed: number;
  diskUsed: number;
}

export async function insertMetricsSample(
  trx: DatabaseTransaction,
  sample: NewMetricsSample,
): Promise<MetricsSampleRow> {
  return await trx
    .insertInto('metrics_sample')
    .values({
      id: newId('metricsSample'),
      sandbox_id: sample.sandboxId,
      // Statement time: the transaction may have waited for the sandbox row since it began.
      at: sql<Date>`clock_timestamp()`,
      uptime_seconds: sample.uptimeSeconds,
      cpu_busy_ms: sample.cpuBusyMs,
      vcpu: sample.allocation.vcpu,
      memory_gb: sample.allocation.memoryGb,
      disk_gb: sample.allocation.diskGb,
      cpu_used: sample.cpuUsed,
      memory_used: sample.memoryUsed,
      disk_used: sample.diskUsed,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Newest sample with an age between `minAgeMs` and `maxAgeMs`. */
export async function findSampleBefore(
  db: Database,
  sandboxId: string,
  age: { minAgeMs: number; maxAgeMs: number },
): Promise<MetricsSampleRow | undefined> {
  return await db
    .selectFrom('metrics_sample')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('at', '<=', sql<Date>`now() - ${age.minAgeMs} * interval '1 millisecond'`)
    .where('at', '>=', sql<Date>`now() - ${age.maxAgeMs} * interval '1 millisecond'`)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The sandbox's samples, newest first. */
export async function listMetricsSamples(db: Database, sandboxId: string): Promise<MetricsSampleRow[]> {
  return await db
    .selectFrom('metrics_sample')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .orderBy('at', 'desc')
    .execute();
}

export interface SampleRetention {
  keptMs: number;
  /** Samples older than this are thinned to one a minute, the one with the most memory in use. */
  denseMs: number;
  /** Upper limit, regardless of age. */
  maxSamples: number;
}

/** Deletes the sandbox's surplus samples. The caller holds the sandbox row lock. */
export async function trimMetricsSamples(
  trx: DatabaseTransaction,
  sandboxId: string,
  retention: SampleRetention,
): Promise<void> {
  await sql`
    delete from metrics_sample where id in (
      select id from (
        select id, at, row_number() over (order by at desc) as place,
          row_number() over (partition by date_bin('1 minute', at, 'epoch')
            order by memory_used desc, at desc) as place_in_minute
        from metrics_sample where sandbox_id = ${sandboxId}
      ) placed
      where at < now() - ${retention.keptMs} * interval '1 millisecond' or place > ${retention.maxSamples}
        or (place_in_minute > 1 and at < now() - ${retention.denseMs} * interval '1 millisecond')
    )`.execute(trx);
}

/** Deletes all samples of the sandbox. Needs the sandbox row lock, as writers do. */
export async function deleteMetricsSamples(trx: DatabaseTransaction, sandboxId: string): Promise<void> {
  await trx.deleteFrom('metrics_sample').where('sandbox_id', '=', sandboxId).execute();
}

/**
 * Deletes at most `limit` samples of any sandbox older than `keptMs`, oldest first. Skips locked
 * rows. Returns the number deleted.
 */
export async function deleteOldMetricsSamples(db: Database, keptMs: number, limit: number): Promise<number> {
  const result = await sql`
    delete from metrics_sample where id = any(array(
      select id from metrics_sample where at < now() - ${keptMs} * interval '1 millisecond'
      order by at limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}

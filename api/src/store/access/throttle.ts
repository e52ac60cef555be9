// Rows of token buckets that limit attempts. SQL only; rules/access/throttle.ts defines the
// buckets.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

export interface ThrottleBucket {
  tries: number;
  seconds: number;
}

/** Fill level and age of a bucket without a whole try. */
interface EmptyBucket {
  tokens: number;
  elapsedSeconds: number;
}

/**
 * Takes a try from a key's bucket; null on success. A missing bucket is full. A single statement on
 * the database clock, so concurrent callers on all replicas never get more tries than the bucket
 * has.
 */
export async function takeAttempt(
  db: Database,
  keySha256: Buffer,
  bucket: ThrottleBucket,
): Promise<EmptyBucket | null> {
  // The clock is read before the row lock is granted, so it may precede a time that another caller
  // has written. greatest() keeps time from running backwards.
  const taken = await sql`
    insert into throttle as held (key_sha256, tokens, refilled_at)
    values (${keySha256}, ${bucket.tries - 1}, clock_timestamp())
    on conflict (key_sha256) do update set
      tokens = ${refilled(bucket, sql`excluded.refilled_at`)} - 1,
      refilled_at = greatest(held.refilled_at, excluded.refilled_at)
    where ${refilled(bucket, sql`excluded.refilled_at`)} >= 1`.execute(db);
  if (taken.numAffectedRows === 1n) return null;
  const { rows } = await sql<EmptyBucket>`
    select tokens, extract(epoch from clock_timestamp() - refilled_at)::double precision as "elapsedSeconds"
    from throttle where key_sha256 = ${keySha256}`.execute(db);
  // The row was deleted concurrently, so the bucket is full.
  return rows[0] ?? { tokens: bucket.tries, elapsedSeconds: 0 };
}

/** Current fill level: the arithmetic of `refilled` in rules/access/throttle.ts. */
function refilled(bucket: ThrottleBucket, at: ReturnType<typeof sql>) {
  return sql`least(${bucket.tries}::double precision, held.tokens
    + greatest(0, extract(epoch from ${at} - held.refilled_at)::double precision)
      * ${bucket.tries / bucket.seconds}::double precision)`;
}

/**
 * Deletes at most `limit` buckets untouched for `idleSeconds`, oldest first. Skips locked rows.
 * Returns the number deleted.
 */
export async function deleteIdleBuckets(db: Database, idleSeconds: number, limit: number): Promise<number> {
  const result = await sql`
    delete from throttle where key_sha256 = any(array(
      select key_sha256 from throttle where refilled_at < now() - make_interval(secs => ${idleSeconds})
      order by refilled_at limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}

// The rows of token buckets: what was tried how often. SQL only; what a bucket holds, and of what,
// is said in rules/throttle.ts.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

export interface ThrottleBucket {
  tries: number;
  seconds: number;
}

/** What a bucket that had no whole try left held, and how long ago. */
export interface EmptyBucket {
  tokens: number;
  elapsedSeconds: number;
}

/**
 * Takes one try out of the bucket of a key, which is full when it is not there yet; null when it
 * had one to give. One statement, by the database's clock: of any number of callers at once, on any
 * replica, as many get one as there are.
 */
export async function takeTry(db: Database, keySha256: Buffer, bucket: ThrottleBucket): Promise<EmptyBucket | null> {
  // The clock is read before the row is waited for, so it may be behind what another caller has
  // written meanwhile: time never runs backwards here.
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
  // Removed at this moment, so it is full again.
  return rows[0] ?? { tokens: bucket.tries, elapsedSeconds: 0 };
}

/** What the row holds at the time: the arithmetic of `refilled` in rules/throttle.ts. */
function refilled(bucket: ThrottleBucket, at: ReturnType<typeof sql>) {
  return sql`least(${bucket.tries}::double precision, held.tokens
    + greatest(0, extract(epoch from ${at} - held.refilled_at)::double precision) * ${bucket.tries / bucket.seconds}::double precision)`;
}

/**
 * Removes at most `limit` buckets that nobody touched for so long, the oldest first, and passes
 * over those in use. Returns how many.
 */
export async function deleteIdleBuckets(db: Database, idleSeconds: number, limit: number): Promise<number> {
  const result = await sql`
    delete from throttle where key_sha256 = any(array(
      select key_sha256 from throttle where refilled_at < now() - make_interval(secs => ${idleSeconds})
      order by refilled_at limit ${limit} for update skip locked))`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}

// Token bucket arithmetic. Capacity is one minute's rate, refilled continuously. Times are
// milliseconds of any clock. All numbers are integers, exact beyond a million tokens a minute, so
// rounding neither adds nor loses tokens.

/** Parts per token. A rate of `n` tokens a minute refills `n` parts a millisecond. */
const PARTS = 60_000;

/** Fill level of a bucket at an instant. A missing bucket is full. */
export interface Bucket {
  parts: number;
  atMs: number;
}

export interface Taken {
  allowed: boolean;
  /** State after the call. */
  bucket: Bucket;
  /** Whole tokens remaining. */
  left: number;
  /** Time until the bucket is full if nothing more is taken. */
  fullInSeconds: number;
  /** Time until a whole token is available; 0 if there is one. */
  nextInSeconds: number;
}

/**
 * Takes a whole token if there is one. A clock that runs backwards neither adds nor removes tokens.
 */
export function takeToken(bucket: Bucket | undefined, perMinute: number, nowMs: number): Taken {
  const parts = refilled(bucket, perMinute, nowMs);
  const allowed = parts >= PARTS;
  return describe(allowed ? parts - PARTS : parts, allowed, perMinute, nowMs);
}

/** Refunds a token that was taken for a request that does not count. */
export function refundToken(bucket: Bucket | undefined, perMinute: number, nowMs: number): Bucket {
  return { parts: Math.min(perMinute * PARTS, refilled(bucket, perMinute, nowMs) + PARTS), atMs: Math.floor(nowMs) };
}

/** Any bucket unused for this long is full and can be dropped. */
export const FULL_AFTER_MS = 60_000;

function refilled(bucket: Bucket | undefined, perMinute: number, nowMs: number): number {
  const capacity = perMinute * PARTS;
  if (bucket === undefined) return capacity;
  const elapsedMs = Math.min(Math.max(0, Math.floor(nowMs) - bucket.atMs), FULL_AFTER_MS);
  return Math.min(capacity, bucket.parts + elapsedMs * perMinute);
}

function describe(parts: number, allowed: boolean, perMinute: number, nowMs: number): Taken {
  const seconds = (missing: number): number => Math.ceil(missing / (perMinute * 1_000));
  return {
    allowed,
    bucket: { parts, atMs: Math.floor(nowMs) },
    left: Math.floor(parts / PARTS),
    fullInSeconds: seconds(perMinute * PARTS - parts),
    nextInSeconds: parts >= PARTS ? 0 : seconds(PARTS - parts),
  };
}

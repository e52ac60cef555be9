// A token bucket, as pure arithmetic: it holds as many tokens as are given in a minute, and is
// refilled continuously. Times are milliseconds of a clock of the caller's choice. All numbers are
// whole (exact up to a million tokens a minute and far beyond), so rounding adds and takes nothing.

/** A token is this many parts; a rate of `n` tokens a minute is then `n` parts a millisecond. */
const PARTS = 60_000;

/** How full a bucket was at an instant. One that does not exist is full. */
export interface Bucket {
  parts: number;
  atMs: number;
}

export interface Taken {
  allowed: boolean;
  /** As it is now. */
  bucket: Bucket;
  /** Whole tokens that are left. */
  left: number;
  /** Until it is full again, when nothing more is taken. */
  fullInSeconds: number;
  /** Until there is a whole token; 0 when there is one. */
  nextInSeconds: number;
}

/** Takes a token if there is a whole one. A clock that goes back adds nothing and takes nothing. */
export function takeToken(bucket: Bucket | undefined, perMinute: number, nowMs: number): Taken {
  const parts = refilled(bucket, perMinute, nowMs);
  const allowed = parts >= PARTS;
  return describe(allowed ? parts - PARTS : parts, allowed, perMinute, nowMs);
}

/** Gives a token back that was taken for something that does not count after all. */
export function giveTokenBack(bucket: Bucket | undefined, perMinute: number, nowMs: number): Bucket {
  return { parts: Math.min(perMinute * PARTS, refilled(bucket, perMinute, nowMs) + PARTS), atMs: Math.floor(nowMs) };
}

/** From this long after its last use on, a bucket is full, and need not be remembered. */
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

// Random numbers that a seed repeats.

export type Random = () => number;

/** mulberry32: uniform in [0, 1). */
function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A separate stream for each number, so that concurrent users do not affect each other's. */
export function streamsOf(seed: number): (of: number) => Random {
  return (of) => randomOf(seed ^ Math.imul(of + 1, 0x9e3779b1));
}

export const below = (random: Random, bound: number): number => Math.floor(random() * bound);
/** Exponentially distributed. */
export const exponential = (random: Random, mean: number): number => -Math.log(1 - random()) * mean;

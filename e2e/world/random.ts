// Pseudo-random numbers, the same on every host for a seed and a name. Not for secrets.
import { createHash } from 'node:crypto';

export class Random {
  readonly #seed: string;
  #state: number;

  constructor(seed: string) {
    this.#seed = seed;
    this.#state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  }

  /** An independent sequence, which does not advance this one. */
  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** From 0 (inclusive) to 1 (exclusive), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `min` to `max`, both inclusive. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[Math.floor(this.next() * values.length)] ?? values[0];
  }

  /** Picks a name with the probability of its weight. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) if ((left -= weight) < 0) return name;
    return (entries.at(-1) as [Name, number])[0];
  }

  /** The values in random order. */
  shuffled<T>(values: readonly T[]): T[] {
    const order = [...values];
    for (let index = order.length - 1; index > 0; index -= 1) {
      const other = this.integer(0, index);
      [order[index], order[other]] = [order[other] as T, order[index] as T];
    }
    return order;
  }
}

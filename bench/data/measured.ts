// Result of a part of the data benchmark: figures with their printed names.
import { figureOf, type Figure } from '../world/statistics.ts';

export interface Measured {
  /** Name in JSON. */
  key: string;
  /** Name in the table. */
  label: string;
  unit: string;
  figure: Figure;
  count: number;
  /** Digits after the decimal point; absent: 1. */
  decimals?: number;
}

export function measured(key: string, label: string, unit: string, numbers: readonly number[], decimals = 1): Measured {
  return { key, label, unit, figure: figureOf(numbers), count: numbers.length, decimals };
}

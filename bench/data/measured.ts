// What a part of the data benchmark hands over: figures with the names they are printed by.
import { figureOf, type Figure } from '../world/statistics.ts';

export interface Measured {
  /** In JSON. */
  key: string;
  /** In the table. */
  label: string;
  unit: string;
  figure: Figure;
  count: number;
  /** After the point; 1 where absent. */
  decimals?: number;
}

export function measured(key: string, label: string, unit: string, numbers: readonly number[], decimals = 1): Measured {
  return { key, label, unit, figure: figureOf(numbers), count: numbers.length, decimals };
}

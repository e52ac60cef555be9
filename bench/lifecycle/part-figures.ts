import type { TableRow } from '../world/statistics.ts';

/** Results of a part of the lifecycle benchmark. */
export interface PartFigures {
  rows: TableRow[];
  json: Record<string, unknown>;
}

// Order statistics of measured numbers, and their printing. Makes no judgement.
export interface Figure {
  min: number;
  median: number;
  p95: number;
  max: number;
}

/** Needs at least one number. The median of an even count is a mean; p95 is by nearest rank. */
export function figureOf(values: readonly number[]): Figure {
  const sorted = sortedOf(values);
  const at = (index: number): number => sorted[index] as number;
  const middle = (sorted.length - 1) / 2;
  return {
    min: at(0),
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    p95: percentile(values, 0.95),
    max: at(sorted.length - 1),
  };
}

/** Percentile by nearest rank. Needs at least one number. @param share 0 to 1 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = sortedOf(values);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
}

function sortedOf(values: readonly number[]): Float64Array {
  if (values.length === 0) throw new Error('no values were measured');
  return Float64Array.from(values).sort();
}

export function round(value: number, decimals = 1): number {
  return Math.round(value * 10 ** decimals) / 10 ** decimals;
}

/** Rounds the numbers for JSON and tables. */
export function rounded({ min, median, p95, max }: Figure, decimals = 1): Figure {
  return {
    min: round(min, decimals),
    median: round(median, decimals),
    p95: round(p95, decimals),
    max: round(max, decimals),
  };
}

export interface TableRow {
  label: string;
  unit: string;
  figure: Figure;
  count: number;
  /** Absent: 1. */
  decimals?: number;
}

/** A row with its name in JSON. */
export interface Measured extends TableRow {
  key: string;
}

export function measured(key: string, label: string, unit: string, numbers: readonly number[], decimals = 1): Measured {
  return { key, label, unit, figure: figureOf(numbers), count: numbers.length, decimals };
}

/** Figures of the rows for JSON, by their keys. */
export function figuresByKey(rows: readonly Measured[]): Record<string, Figure> {
  return Object.fromEntries(rows.map(({ key, figure, decimals }) => [key, rounded(figure, decimals)]));
}

/** A plain table: a row per figure. */
export function renderTable(rows: readonly TableRow[]): string {
  const header = ['', 'unit', 'n', 'min', 'median', 'p95', 'max'];
  const cells = rows.map((row) => {
    const { min, median, p95, max } = rounded(row.figure, row.decimals);
    return [
      row.label,
      row.unit,
      String(row.count),
      ...[min, median, p95, max].map((value) => value.toFixed(row.decimals ?? 1)),
    ];
  });
  return renderCells(header, cells, 2);
}

/** Columns from `leftColumns` on are aligned to the right. */
export function renderCells(
  header: readonly string[],
  cells: readonly (readonly string[])[],
  leftColumns: number,
): string {
  const widths = header.map((text, column) => Math.max(text.length, ...cells.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row
      .map((text, column) =>
        column < leftColumns ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(header), widths.map((width) => '─'.repeat(width)).join('  '), ...cells.map(line)].join('\n');
}

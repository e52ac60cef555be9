// Order statistics of measured numbers, and their printing. Makes no judgement.
export interface Figure {
  min: number;
  median: number;
  p95: number;
  max: number;
}

/** Needs at least one number. The median of an even count is a mean; p95 is by nearest rank. */
export function figureOf(values: readonly number[]): Figure {
  if (values.length === 0) throw new Error('no values were measured');
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, index))] as number;
  const middle = (sorted.length - 1) / 2;
  return {
    min: at(0),
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    p95: at(Math.ceil(0.95 * sorted.length) - 1),
    max: at(sorted.length - 1),
  };
}

/** Rounds the numbers for JSON and tables. */
export function rounded(figure: Figure, decimals = 1): Figure {
  const round = (value: number): number => Math.round(value * 10 ** decimals) / 10 ** decimals;
  return { min: round(figure.min), median: round(figure.median), p95: round(figure.p95), max: round(figure.max) };
}

export interface TableRow {
  label: string;
  unit: string;
  figure: Figure;
  count: number;
  /** Absent: 1. */
  decimals?: number;
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

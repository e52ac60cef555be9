// Formats a table that fits the terminal: shrinks the widest columns, then drops optional ones.
// Without a terminal, nothing is cut.
import stringWidth from 'string-width';
import type { Paint, Style } from './style.ts';
import { plainText } from './plain-text.ts';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string | number | null | undefined;
  align?: 'right';
  /** Cut last, for ids: a truncated id is useless. */
  whole?: true;
  /** Preferred minimum width, which aligns the tables of consecutive pages. */
  cells?: number;
  /** Minimum useful width. */
  least?: number;
  /** Dropped if other columns would fall below `least`; the last one first. */
  optional?: true;
  style?: (row: Row) => Style | undefined;
}

interface TableOptions {
  /** Width of the terminal; undefined: unlimited. */
  width?: number | undefined;
  paint?: Paint;
}

const GAP = '  ';
/** Absolute minimum width of a column. */
const NARROWEST = 4;

/** Returns lines without line ends; the first is the header. */
export function tableLines<Row>(
  all: readonly Column<Row>[],
  rows: readonly Row[],
  { width = Infinity, paint = (_style, text) => text }: TableOptions = {},
): string[] {
  const columns = columnsThatFit(all, rows, width);
  const titles = columns.map(({ title }) => title.toUpperCase());
  const cells = rows.map((row) => columns.map(({ value }) => cellOf(value(row))));
  const widths = fitWidths(
    columns.map((column) => cellsOf(column, rows)),
    columns.map(leastOf),
    width,
  );
  const line = (texts: readonly string[], row?: Row): string => {
    const last = texts.length - 1;
    return texts
      .map((text, at) => {
        const shown = cut(text, widths[at] ?? 0);
        const style = row === undefined ? undefined : columns[at]?.style?.(row);
        const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - stringWidth(shown)));
        const painted = style === undefined ? shown : paint(style, shown);
        if (columns[at]?.align === 'right') return space + painted;
        return at === last ? painted : painted + space;
      })
      .join(GAP);
  };
  return [line(titles), ...rows.map((row, at) => line(cells[at] ?? [], row))];
}

/** Width without cutting. */
function cellsOf<Row>({ title, value, cells = 0 }: Column<Row>, rows: readonly Row[]): number {
  return rows.reduce(
    (most, row) => Math.max(most, stringWidth(cellOf(value(row)))),
    Math.max(cells, stringWidth(title)),
  );
}

function leastOf({ whole, least = NARROWEST }: Column<never>): number {
  return whole === true ? Infinity : least;
}

function columnsThatFit<Row>(all: readonly Column<Row>[], rows: readonly Row[], width: number): readonly Column<Row>[] {
  const needed = new Map(all.map((column) => [column, Math.min(cellsOf(column, rows), leastOf(column))]));
  let columns = all;
  for (const column of all.filter(({ optional }) => optional === true).toReversed()) {
    if (lineCells(columns.map((kept) => needed.get(kept) ?? 0)) <= width) break;
    columns = columns.filter((kept) => kept !== column);
  }
  return columns;
}

function lineCells(widths: readonly number[]): number {
  return widths.reduce((sum, cells) => sum + cells, GAP.length * (widths.length - 1));
}

function cellOf(value: string | number | null | undefined): string {
  return value === null || value === undefined || value === '' ? '-' : plainText(String(value));
}

/** Shrinks the widest column above its `least` until all fit; then the widest of all. */
function fitWidths(wanted: readonly number[], leasts: readonly number[], width: number): number[] {
  const widths = [...wanted];
  for (const least of [(at: number): number => leasts[at] ?? NARROWEST, (): number => NARROWEST]) {
    while (lineCells(widths) > width) {
      const giving = widths.map((cells, at) => (cells > least(at) ? cells : 0));
      const most = Math.max(...giving);
      if (most === 0) break;
      widths[giving.indexOf(most)] = most - 1;
    }
  }
  return widths;
}

/** Cuts a text to `cells` terminal cells, with an ellipsis. */
export function cut(text: string, cells: number): string {
  if (stringWidth(text) <= cells) return text;
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(kept + segment) > cells - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

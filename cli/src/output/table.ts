// Rows as a table that fits its terminal: the widest columns give way, cells are cut with an ellipsis. Without a terminal nothing is cut.
import stringWidth from 'string-width';
import type { Style } from './output.ts';
import { plainText } from './plain-text.ts';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string | number | null | undefined;
  /** Numbers stand at the right. */
  align?: 'right';
  /** Cut last: ids, which are of no use when they are not whole. */
  whole?: true;
  /** At least so many cells: where tables follow one another and are to be one. */
  cells?: number;
  style?: (row: Row) => Style | undefined;
}

export interface TableOptions {
  /** Cells of the terminal; undefined: as wide as it takes. */
  width?: number | undefined;
  paint?: (style: Style, text: string) => string;
}

const GAP = '  ';
/** No column is made narrower than this. */
const NARROWEST = 4;

/** Lines without line ends; the first has the titles. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, paint = (_style, text) => text }: TableOptions = {},
): string[] {
  const titles = columns.map(({ title }) => title.toUpperCase());
  const cells = rows.map((row) => columns.map(({ value }) => cellOf(value(row))));
  const widths = fit(
    columns.map(({ cells: least = 0 }, at) => widest([titles, ...cells], at, least)),
    columns.map(({ whole }) => whole === true),
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

function widest(lines: readonly (readonly string[])[], at: number, least: number): number {
  return lines.reduce((most, line) => Math.max(most, stringWidth(line[at] ?? '')), least);
}

function cellOf(value: string | number | null | undefined): string {
  return value === null || value === undefined || value === '' ? '-' : plainText(String(value));
}

/** Takes from the widest column until all fit, from whole ones only when the others have given what they can. */
function fit(wanted: readonly number[], whole: readonly boolean[], width: number | undefined): number[] {
  const widths = [...wanted];
  if (width === undefined) return widths;
  const gaps = GAP.length * (widths.length - 1);
  for (const mayGive of [(at: number): boolean => whole[at] === false, (): boolean => true]) {
    for (;;) {
      const over = widths.reduce((sum, cells) => sum + cells, gaps) - width;
      const giving = widths.map((cells, at) => (mayGive(at) && cells > NARROWEST ? cells : 0));
      const widest = giving.indexOf(Math.max(...giving));
      const widestCells = giving[widest] ?? 0;
      if (over <= 0) return widths;
      if (widestCells === 0) break;
      widths[widest] = widestCells - 1;
    }
  }
  return widths;
}

/** The text in at most so many cells of a terminal, the last an ellipsis where it was cut. */
export function cut(text: string, cells: number): string {
  if (stringWidth(text) <= cells) return text;
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(kept + segment) > cells - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

// Formats aligned names and values, one per line.
import type { Paint, Style } from './style.ts';
import { plainText } from './plain-text.ts';

/** Omitted without a value. */
export type Field = readonly [name: string, value: string | number | null | undefined, style?: Style | undefined];

export function fieldLines(fields: readonly Field[], paint: Paint = (_style, text) => text): string[] {
  const shown = fields.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value, style]) => {
    const text = plainText(String(value));
    return `${paint('dim', name.padEnd(width))}  ${style === undefined ? text : paint(style, text)}`;
  });
}

// Formats bytes, percentages, hours and bars.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;
const FULL = '█';
const EMPTY = '░';

/** In the largest fitting unit, with one decimal below ten: `1.5 GiB`. */
export function bytes(amount: number): string {
  let rest = amount;
  let unit = 0;
  while (Math.round(rest) >= 1_024 && unit < UNITS.length - 1) {
    rest /= 1_024;
    unit += 1;
  }
  return `${unit > 0 && rest < 9.95 ? rest.toFixed(1) : Math.round(rest)} ${UNITS[unit]}`;
}

export function mebibytes(amount: number): string {
  return bytes(amount * 1_048_576);
}

/** Rounded down, so that 80 and 100 are never overstated; one decimal below ten. */
export function percent(share: number): string {
  const shown = share < 10 ? Math.floor(share * 10) / 10 : Math.floor(share);
  return `${shown} %`;
}

/** With useful decimals: `0.004 h`, `12.5 h`, `1200 h`. */
export function hours(amount: number): string {
  const decimals = amount >= 100 ? 0 : amount >= 1 ? 1 : 3;
  return `${Number(amount.toFixed(decimals))} h`;
}

/** @param share percentage; values over 100 fill the bar */
export function bar(share: number, cells: number): string {
  const full = Math.min(cells, Math.max(0, Math.round((share / 100) * cells)));
  return FULL.repeat(full) + EMPTY.repeat(cells - full);
}

// Keys of the bar for touch screens, as the bytes that a terminal sends.
export type BarKey = 'Escape' | 'Tab' | 'ArrowLeft' | 'ArrowUp' | 'ArrowDown' | 'ArrowRight' | '|' | '~';

const ARROWS: Readonly<Record<string, string>> = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D' };

/** @param application whether the program has asked for application cursor keys */
export function bytesOf(key: BarKey, application: boolean): string {
  const arrow = ARROWS[key];
  if (arrow !== undefined) return `\u001b${application ? 'O' : '['}${arrow}`;
  return key === 'Escape' ? '\u001b' : key === 'Tab' ? '\t' : key;
}

/** The control character of a typed one; text without one is unchanged. */
export function withControl(typed: string): string {
  if (typed === ' ') return '\u0000';
  if (typed === '?') return '\u007f';
  return /^[@-_a-z]$/.test(typed) ? String.fromCharCode(typed.charCodeAt(0) & 0x1f) : typed;
}

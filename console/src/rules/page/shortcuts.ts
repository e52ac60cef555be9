// Keyboard shortcuts. Those of single keys are off where keys mean text.

export type Shortcut = 'palette' | 'sandboxes' | 'agents' | 'inbox' | 'filter' | 'list';

/** `terminal`: also Control-K belongs to its shell. */
export type Place = 'page' | 'field' | 'terminal';

type Press = { key: string } & Record<
  'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey' | 'isComposing' | 'repeat',
  boolean
>;

interface Situation {
  place: Place;
  mac: boolean;
  /** The key before was {@link PREFIX}. */
  prefixed: boolean;
  /** Whether the person wants shortcuts of single keys. */
  singles: boolean;
}

export const PREFIX = 'g';
/** How long after the prefix the second key counts. */
export const SEQUENCE_MS = 1_500;
export const SEQUENCES: Readonly<Record<string, Shortcut>> = { s: 'sandboxes', a: 'agents', i: 'inbox' };
export const SINGLES: Readonly<Record<string, Shortcut>> = { '/': 'filter', '?': 'list' };

/** The shortcut of a key press; null: none. */
export function shortcutOf(press: Press, { place, mac, prefixed, singles }: Situation): Shortcut | 'prefix' | null {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = press;
  if (press.isComposing || press.repeat || altKey) return null;
  if (ctrlKey || metaKey) {
    const isPalette = key.toLowerCase() === 'k' && !shiftKey && metaKey === mac && ctrlKey !== mac;
    return isPalette && (mac || place !== 'terminal') ? 'palette' : null;
  }
  if (place !== 'page' || !singles) return null;
  if (prefixed && !shiftKey && SEQUENCES[key] !== undefined) return SEQUENCES[key];
  return key === PREFIX && !shiftKey ? 'prefix' : (SINGLES[key] ?? null);
}

// The keyboard of this computer, and the person's choice about single keys.
import { readStored, store } from '../../session/stored.ts';

const KEY = 'berth.shortcuts';

export const IS_MAC = /Mac|iP/.test(navigator.platform);
export const PALETTE_KEYS = IS_MAC ? '⌘ K' : 'Ctrl K';

/** Whether the person wants shortcuts of single keys (WCAG 2.1.4). */
export const wantsSingles = (): boolean => readStored(KEY) !== 'off';
export const setSingles = (on: boolean): void => store(KEY, on ? null : 'off');

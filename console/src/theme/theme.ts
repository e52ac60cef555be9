// The person's choice of a theme; start.ts applies it.
import { readStored, store } from '../session/stored.ts';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'berth.theme';

export function readTheme(): Theme {
  const theme = readStored(KEY);
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

export function setTheme(theme: Theme): void {
  store(KEY, theme === 'system' ? null : theme);
  // Browsers send the event to other tabs only.
  dispatchEvent(new StorageEvent('storage', { key: KEY }));
}

/** Calls the listener after each choice, also in another tab. Returns a function that ends it. */
export function subscribeTheme(listener: () => void): () => void {
  addEventListener('storage', listener);
  return () => removeEventListener('storage', listener);
}

import { useSyncExternalStore } from 'react';

// The navigation takes a part of it.
const WIDE = matchMedia('(width >= 1000px)');

function subscribe(listener: () => void): () => void {
  WIDE.addEventListener('change', listener);
  return () => WIDE.removeEventListener('change', listener);
}

/** Whether there is room for tables. */
export function useWide(): boolean {
  return useSyncExternalStore(subscribe, () => WIDE.matches);
}

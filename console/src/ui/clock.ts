// Clock of all times of the page: the service's, since clocks of computers may be wrong. A timer
// runs while any time is shown. Ticks also when the person chooses another time zone.
import { useEffect, useState, useSyncExternalStore } from 'react';
import { zone } from '../rules/page/zone.ts';

const TICK_MS = 10_000;
const listeners = new Set<() => void>();
let aheadMs = 0;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** @param ms time of the service now, shown from the next tick on; NaN: unknown */
export function setClock(ms: number): void {
  // Lesser differences may be the time that a response takes.
  if (Math.abs(ms - Date.now() - aheadMs) > TICK_MS) aheadMs = ms - Date.now();
}

function tick(): void {
  const next = Date.now() + aheadMs;
  // Another number, or nothing is drawn anew.
  now = next === now ? next + 1 : next;
  for (const each of listeners) each();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  zone.subscribe(tick);
  if (timer === undefined) {
    // No time was shown, so the clock stood still.
    now = Date.now() + aheadMs;
    timer = setInterval(tick, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Whole seconds since a time, or since the component is shown. */
export function useSeconds(since?: string): number {
  const [shown] = useState(Date.now);
  const [time, setTime] = useState(shown);
  useEffect(() => {
    const timer = setInterval(() => setTime(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, Math.floor((time - (since === undefined ? shown : Date.parse(since))) / 1_000));
}

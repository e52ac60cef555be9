// The named steps at which tests kill this daemon as `kill -9` would. Inert unless armed (BERTH_CRASH_AT, read by config.ts).
// Each name stands right after the step it names; a test that iterates over the list has killed the daemon between every two durable steps.

export const CRASH_POINTS = [
  'create:accepted',
  'create:folders-made',
  'create:recorded',
  'create:secret-written',
  'create:driver-state-saved',
  'create:restored',
  'create:identified',
  'create:running-recorded',
  'destroy:accepted',
  'destroy:recorded',
  'destroy:driver-done',
  'destroy:contents-removed',
  'destroy:fenced',
  'destroy:removed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

let armed: { point: CrashPoint; passesLeft: number } | null = null;

/**
 * Arms one point: `name` or `name#n` for its nth pass (a driver may save its state more than once). Throws for a name that is not in the list.
 */
export function armCrashPoint(text: string): void {
  const [name, nth = '1'] = text.split('#');
  const point = CRASH_POINTS.find((known) => known === name);
  if (point === undefined || !/^[1-9]\d{0,3}$/.test(nth)) {
    throw new Error(`BERTH_CRASH_AT: '${text}' is none of ${CRASH_POINTS.join(', ')} (with #n for the nth pass)`);
  }
  armed = { point, passesLeft: Number(nth) };
}

/** Ends this process without any clean-up when the point is armed. */
export function crashPoint(point: CrashPoint): void {
  if (armed?.point === point && --armed.passesLeft === 0) {
    process.kill(process.pid, 'SIGKILL');
  }
}

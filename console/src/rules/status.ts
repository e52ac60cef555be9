// Presentation of a sandbox's status. Unknown statuses are shown by their name.
import { IDLE_MINUTES, SANDBOX_STATES, type api } from '@berth/sdk';

export type Tone = 'good' | 'busy' | 'quiet' | 'bad';

const TONES: Readonly<Record<string, Tone>> = {
  provisioning: 'busy',
  running: 'busy',
  ready: 'good',
  sleeping: 'busy',
  stopped: 'quiet',
  waking: 'busy',
  failed: 'bad',
  destroying: 'busy',
  deleted: 'quiet',
};

export function toneOf(status: string): Tone {
  return TONES[status] ?? 'quiet';
}

export function isAwake({ status }: { status: string }): boolean {
  return (SANDBOX_STATES as Readonly<Record<string, { awake: boolean }>>)[status]?.awake === true;
}

/** Whether the status changes by itself soon, so that the page polls faster. */
export function isMoving({ status, resizing }: { status: string; resizing: boolean }): boolean {
  const { settled } = (SANDBOX_STATES as Readonly<Record<string, { settled: boolean }>>)[status] ?? { settled: true };
  return resizing || !settled || status === 'running';
}

type Sleeper = Pick<api.Sandbox, 'status' | 'mode' | 'persistencePolicy' | 'lastActiveAt'>;

/**
 * Time at which an awake sandbox sleeps unless it is used; null if it does not.
 * @param idleMinutes setting of its project; null: the default
 */
export function sleepsAt(sandbox: Sleeper, idleMinutes: number | null, now: number): string | null {
  const minutes = idleMinutes ?? IDLE_MINUTES.default;
  const sleeps = sandbox.mode === 'persistent' && sandbox.persistencePolicy === 'sleep_resume' && minutes > 0;
  if (!sleeps || !isAwake(sandbox)) return null;
  // A use may be newer than the row that is shown.
  return new Date(Math.max(now, Date.parse(sandbox.lastActiveAt) + minutes * 60_000)).toISOString();
}

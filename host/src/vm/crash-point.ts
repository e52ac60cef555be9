// Named steps at which tests kill this daemon, as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by config.ts). Each name follows its step directly; a test over the whole
// list kills the daemon between every two durable steps.
import { CrashPoints } from '@berth/os/crash-point.ts';

export const CRASH_POINTS = [
  'create:accepted',
  'create:folders-made',
  'create:recorded',
  'create:secret-written',
  'create:driver-state-saved',
  'create:restored',
  'create:identified',
  'create:running-recorded',
  'pool:folders-made',
  'pool:driver-state-saved',
  'pool:restored',
  'pool:warm',
  'pool:claim-recorded',
  'pool:claim-moved',
  'pool:claim-removed',
  'pool:driver-done',
  'pool:removed',
  'sleep:accepted',
  'sleep:recorded',
  'sleep:captured',
  'sleep:asleep-recorded',
  'sleep:key-forgotten',
  'wake:accepted',
  'wake:key-held',
  'wake:recorded',
  'wake:driver-state-saved',
  'wake:restored',
  'wake:continued-recorded',
  'wake:continued',
  'wake:identified',
  'wake:secret-promoted',
  'wake:running-recorded',
  'boot:given-up-snapshot',
  'boot:driver-state-saved',
  'boot:booted',
  'boot:continued-recorded',
  'resize:accepted',
  'resize:epoch-recorded',
  'resize:plugged',
  'resize:verified',
  'resize:recorded',
  'destroy:accepted',
  'destroy:recorded',
  'destroy:driver-done',
  'destroy:contents-removed',
  'destroy:fenced',
  'destroy:removed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

const points = new CrashPoints(CRASH_POINTS);

/** Arms one point: `name`, or `name#n` for its nth pass. Throws for an unknown name. */
export function armCrashPoint(text: string): void {
  points.arm(text);
}

/** Kills this process without clean-up if the point is armed. */
export function crashPoint(point: CrashPoint): void {
  points.pass(point);
}

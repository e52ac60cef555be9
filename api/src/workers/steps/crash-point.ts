// The named steps at which tests kill this process as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by config.ts). Each name stands right after the step it names; those that
// end in `enqueued` or `written` are inside a transaction, before its commit.
import { CrashPoints } from '@berth/protocol/crash-point.ts';

export const CRASH_POINTS = [
  'create:enqueued',
  'step:committed',
  'provision:claimed',
  'provision:looked-up',
  'provision:made',
  'provision:made-recorded',
  'provision:written',
  'provision:settled',
  'provision:settled-recorded',
  'sleep:enqueued',
  'sleep:claimed',
  'sleep:looked-up',
  'sleep:captured',
  'sleep:captured-recorded',
  'sleep:written',
  'sleep:settled',
  'sleep:settled-recorded',
  'wake:enqueued',
  'wake:claimed',
  'wake:looked-up',
  'wake:woken',
  'wake:woken-recorded',
  'wake:written',
  'wake:settled',
  'wake:settled-recorded',
  'resize:enqueued',
  'resize:claimed',
  'resize:looked-up',
  'resize:grown',
  'resize:grown-recorded',
  'resize:written',
  'resize:settled',
  'resize:settled-recorded',
  'destroy:enqueued',
  'destroy:claimed',
  'destroy:looked-up',
  'destroy:gone',
  'destroy:gone-recorded',
  'destroy:written',
  'destroy:settled',
  'destroy:settled-recorded',
  'clone:enqueued',
  'clone:claimed',
  'clone:looked-up',
  'clone:cloned',
  'clone:cloned-recorded',
  'clone:written',
  'clone:settled',
  'clone:settled-recorded',
  'invitation:enqueued',
  'mail:claimed',
  'mail:token-written',
  'mail:token-committed',
  'mail:sent',
  'mail:noted-written',
  'mail:noted',
  'mail:sent-recorded',
  'caps:warned',
  'caps:reached-noted',
  'caps:slept',
  'lost:written',
  'lost:settled',
  'recovered:written',
  'recovered:settled',
  'reap:gone',
  'rollup:cut-written',
  'rollup:sums-written',
  'rollup:committed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

const points = new CrashPoints(CRASH_POINTS);

/**
 * Arms one point: `name`, or `name#n` for its nth pass. Throws for a name that is not in the list.
 */
export function armCrashPoint(text: string): void {
  points.arm(text);
}

/** Ends this process without any clean-up when the point is armed. */
export function crashPoint(point: CrashPoint): void {
  points.pass(point);
}

// The named steps at which tests kill this process as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by config.ts). Each name stands right after the step it names; those that
// end in `enqueued` or `written` are inside a transaction, before its commit.
import { CrashPoints } from '@berth/protocol/crash-point.ts';
import type { LifecycleStepKind } from '../../services/context/lifecycle-port.ts';

const LIFECYCLE_KINDS = ['provision', 'sleep', 'wake', 'resize', 'destroy', 'clone'] as const;
/** Those of a lifecycle step, in their order. */
const STAGES = ['enqueued', 'claimed', 'looked-up', 'answered', 'decided', 'written', 'settled', 'removed'] as const;
const OTHER_POINTS = [
  'step:committed',
  'invitation-mail:enqueued',
  'invitation-mail:claimed',
  'invitation-mail:token-written',
  'invitation-mail:token-committed',
  'invitation-mail:sent',
  'invitation-mail:noted-written',
  'invitation-mail:noted',
  'invitation-mail:removed',
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

type CrashPoint = `${LifecycleStepKind}:${(typeof STAGES)[number]}` | (typeof OTHER_POINTS)[number];
export const CRASH_POINTS: readonly CrashPoint[] = [
  ...LIFECYCLE_KINDS.flatMap((kind) => STAGES.map((stage) => `${kind}:${stage}` as const)),
  ...OTHER_POINTS,
];

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

// Named points at which tests kill this process, as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by config.ts). Each name follows the action it names; names ending in
// `enqueued` or `written` are inside a transaction, before its commit.
import { CrashPoints } from '@berth/os/crash-point.ts';
import type { LifecycleStepKind } from '../../services/context/lifecycle-port.ts';

const LIFECYCLE_KINDS = ['provision', 'sleep', 'wake', 'resize', 'destroy', 'clone'] as const;
/** Stages of a lifecycle step, in order. */
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

/** Arms a point: `name`, or `name#n` for its nth pass. Throws for an unknown name. */
export function armCrashPoint(text: string): void {
  points.arm(text);
}

/** Kills this process without cleanup if the point is armed. */
export function crashPoint(point: CrashPoint): void {
  points.pass(point);
}

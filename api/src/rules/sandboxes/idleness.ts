// Whether a sandbox is in use, and when one that is not goes to sleep by itself. Pure; the clock is
// an argument. services/activity-signal.ts notes signs of use, services/idle.ts and workers/idle.ts
// act on the verdict.
//
//   use noted ──> sandbox.last_active_at ──┐
//   CPU between two looks ─────────────────┼──> idleness() ──> exempt | in_use | quiet | idle
//   policy of sandbox and project ─────────┘
import { IDLE_MINUTES } from '@berth/contract/route/limits.ts';
import type { PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';

/**
 * The registry of signs of use that are noted as they happen, all in the sandbox's one
 * `last_active_at`. Whatever lets somebody use a sandbox gets its name here and calls
 * `noteActivity`, or `holdActivity` for as long as it lasts.
 */
export const USE_SIGNALS = ['exec', 'file', 'connect', 'clone', 'preview', 'cpu'] as const;
export type UseSignal = (typeof USE_SIGNALS)[number];

/**
 * Share of one host CPU above which a machine is at work by itself, although nobody calls it.
 * docs/decisions/size-recommendation.md has the measurements it stands between.
 */
export const BUSY_CPU_SHARE = 0.1;

export interface IdlenessInput {
  now: number;
  mode: 'persistent' | 'ephemeral';
  persistencePolicy: PersistencePolicy;
  /** The project's setting; null: the default. 0: never. */
  idleMinutes: number | null;
  /** The last sign of use, its wake included. Milliseconds since 1970. */
  lastActiveAt: number;
  /** Mean share of one host CPU that the machine used since the look before; null: not known. */
  cpuShare: number | null;
}

/**
 * `exempt`: never sleeps by itself. `in_use`: at work at this moment, which is a sign of use.
 * `quiet`: not for long enough, or nobody knows what it does at this moment. `idle`: to be put to
 * sleep.
 */
export type Idleness = 'exempt' | 'in_use' | 'quiet' | 'idle';

export function idleness(input: IdlenessInput): Idleness {
  const minutes = input.idleMinutes ?? IDLE_MINUTES.default;
  if (input.mode !== 'persistent' || input.persistencePolicy !== 'sleep_resume' || minutes === 0) return 'exempt';
  if (input.cpuShare === null) return 'quiet';
  if (input.cpuShare > BUSY_CPU_SHARE) return 'in_use';
  return input.now - input.lastActiveAt >= minutes * 60_000 ? 'idle' : 'quiet';
}

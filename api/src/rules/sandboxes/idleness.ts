// Idleness of a sandbox, and when it goes to sleep by itself. Pure; the clock is an argument.
// services/sandboxes/activity-signal.ts records usage signals; services/sandboxes/idle.ts and
// workers/sandboxes/idle.ts act on the result.
//
//   usage signal ──> sandbox.last_active_at ──┐
//   CPU between two checks ───────────────────┼──> idleness() ──> exempt | in_use | quiet | idle
//   policy of sandbox and project ────────────┘
import { IDLE_MINUTES } from '@berth/contract/route/limits.ts';
import type { PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';

/**
 * Share of one host CPU above which a VM counts as working although nobody calls it.
 * docs/decisions/size-recommendation.md derives it.
 */
export const BUSY_CPU_SHARE = 0.1;

export interface IdlenessInput {
  now: number;
  mode: 'persistent' | 'ephemeral';
  persistencePolicy: PersistencePolicy;
  /** The setting of the sandbox, else of its project; null: the default; 0: never. */
  idleMinutes: number | null;
  /** Time of the last usage signal, including its wake, in milliseconds since 1970. */
  lastActiveAt: number;
  /** Mean share of one host CPU used since the previous check; null: unknown. */
  cpuShare: number | null;
}

/**
 * `exempt`: never sleeps by itself. `in_use`: working now, which is a usage signal. `quiet`: not
 * idle long enough, or its CPU usage is unknown. `idle`: due for sleep.
 */
export type Idleness = 'exempt' | 'in_use' | 'quiet' | 'idle';

export function idleness(input: IdlenessInput): Idleness {
  const minutes = input.idleMinutes ?? IDLE_MINUTES.default;
  if (input.mode !== 'persistent' || input.persistencePolicy !== 'sleep_resume' || minutes === 0) return 'exempt';
  if (input.cpuShare === null) return 'quiet';
  if (input.cpuShare > BUSY_CPU_SHARE) return 'in_use';
  return input.now - input.lastActiveAt >= minutes * 60_000 ? 'idle' : 'quiet';
}

// Decides the pool's next step from its state and the demand. Pure.
//
//   making -> ready <-> exercising        ready --claim--> a VM's        any --end--> gone

/** A VM in the pool, waiting or being exercised. */
export interface WaitingVm {
  id: string;
  exercisedAtMs: number;
}

export interface PoolView {
  nowMs: number;
  /** Limit by demand. */
  target: number;
  /** Limit by memory. */
  room: number;
  ready: readonly WaitingVm[];
  making: number;
  exercising: number;
  /** In-flight creates and wakes with a waiting caller. */
  underWay: number;
  /** Time when the last of them finished. */
  quietSinceMs: number;
  /** Earliest time of the next make, after a failure or a memory shortage. */
  makeFromMs: number;
}

export interface PoolPace {
  atOnce: number;
  /**
   * Time without waiting callers before the pool uses the CPU: a create is followed by its first
   * command.
   */
  quietMs: number;
  /** Waiting time before the next exercise. */
  exerciseAfterMs: number;
}

export type PoolStep =
  | { do: 'make' }
  | { do: 'exercise'; id: string }
  | { do: 'end'; id: string; why: 'memory is short' | 'fewer are asked for' }
  /** No step until then, unless the view changes. */
  | { do: 'wait'; untilMs: number };

/**
 * Memory first, at any moment: ending a VM costs less than a shortage. Everything else only while
 * no caller waits.
 * Ends the VM that waited longest: its timers dirtied the most pages, so it frees the most memory,
 * and it would be the next to need CPU for an exercise.
 */
export function nextStep(view: PoolView, pace: PoolPace): PoolStep {
  const { nowMs, target, room, ready, making, exercising } = view;
  const count = ready.length + making + exercising;
  const oldest = ready.reduce<WaitingVm | null>(
    (a, b) => (a === null || b.exercisedAtMs < a.exercisedAtMs ? b : a),
    null,
  );
  if (oldest !== null && count > room) return { do: 'end', id: oldest.id, why: 'memory is short' };

  if (view.underWay > 0) return { do: 'wait', untilMs: Infinity };

  const quietFromMs = view.quietSinceMs + pace.quietMs;
  if (nowMs < quietFromMs) return { do: 'wait', untilMs: quietFromMs };

  if (oldest !== null && count > target) return { do: 'end', id: oldest.id, why: 'fewer are asked for' };

  const wanted = count < Math.min(target, room);
  if (wanted && making < pace.atOnce && nowMs >= view.makeFromMs) return { do: 'make' };

  const exerciseFromMs = (oldest?.exercisedAtMs ?? Infinity) + pace.exerciseAfterMs;
  if (oldest !== null && exercising === 0 && making === 0 && nowMs >= exerciseFromMs)
    return { do: 'exercise', id: oldest.id };

  const makeFromMs = wanted && making < pace.atOnce ? view.makeFromMs : Infinity;
  return { do: 'wait', untilMs: Math.min(makeFromMs, making + exercising > 0 ? Infinity : exerciseFromMs) };
}

/** Picks the VM exercised last: its code and pages are the warmest. */
export function vmToClaim<T extends WaitingVm>(ready: Iterable<T>): T | null {
  let warmest: T | null = null;
  for (const vm of ready) if (warmest === null || vm.exercisedAtMs > warmest.exercisedAtMs) warmest = vm;

  return warmest;
}

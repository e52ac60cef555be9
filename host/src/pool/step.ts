// What the pool does next: pure, one step at a time, from what there is and what is asked for. Does
// nothing itself.
//
//   making -> ready <-> exercising        ready --claim--> a VM's        any --end--> gone

/** A machine that waits, or is kept from waiting by its exercise. */
export interface WaitingMachine {
  id: string;
  exercisedAtMs: number;
}

export interface PoolView {
  nowMs: number;
  /** By demand. */
  target: number;
  /** By memory. */
  room: number;
  ready: readonly WaitingMachine[];
  making: number;
  exercising: number;
  /** Creates and wakes that a caller waits for. */
  underWay: number;
  /** When the last of them was over. */
  quietSinceMs: number;
  /** Not before this is another one made: the last one failed, or memory was short. */
  makeFromMs: number;
}

export interface PoolPace {
  /** How many are made at once. */
  atOnce: number;
  /**
   * How long nobody must have waited for a machine before the pool takes the processor: a create is
   * followed by its first command.
   */
  quietMs: number;
  /** How long a machine may wait before it is exercised. */
  exerciseAfterMs: number;
}

export type PoolStep =
  | { do: 'make' }
  | { do: 'exercise'; id: string }
  | { do: 'end'; id: string; why: 'memory is short' | 'fewer are asked for' }
  /** Nothing before that moment, unless something changes. */
  | { do: 'wait'; untilMs: number };

/**
 * Memory first, at any moment: what it costs to end a machine is less than what it costs not to.
 * Everything else only while nobody waits for a machine.
 *
 * It is the one that waited longest which goes: its timers made most pages its own, so it gives
 * back the most memory, and it would be the next to need the processor for an exercise.
 */
export function nextStep(view: PoolView, pace: PoolPace): PoolStep {
  const { nowMs, target, room, ready, making, exercising } = view;
  const count = ready.length + making + exercising;
  const oldest = ready.reduce<WaitingMachine | null>(
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

/** Which machine a create gets: the one exercised last, whose code and pages are the warmest. */
export function machineToClaim<T extends WaitingMachine>(ready: Iterable<T>): T | null {
  let warmest: T | null = null;
  for (const machine of ready) if (warmest === null || machine.exercisedAtMs > warmest.exercisedAtMs) warmest = machine;

  return warmest;
}

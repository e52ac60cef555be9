// Events at the instants of a simulated clock. All events due at an instant run there: first, in
// turn, those that change past usage, then the others concurrently.
import type { SimulatedClock } from './simulated-clock.ts';

/** `before`: changes past usage. `now`: runs after those, concurrently with others. */
export interface Event {
  turn: 'before' | 'now';
  /** Events with the same value run in turn. */
  of: string;
  run: () => Promise<void>;
}

export class Timeline {
  readonly #instants: readonly number[];
  readonly #events = new Map<number, Event[]>();
  #nowUs: number;

  /** `instants`: ascending, in microseconds. */
  constructor(startsMs: number, instants: readonly number[]) {
    this.#nowUs = startsMs * 1_000;
    this.#instants = instants;
  }

  get nowMs(): number {
    return Math.floor(this.#nowUs / 1_000);
  }

  /** Schedules the event at the first later instant at or after `ms`; drops it after the last. */
  at(ms: number, event: Event): void {
    const wantedUs = Math.max(Math.ceil(ms) * 1_000, this.#nowUs + 1);
    let [low, high] = [0, this.#instants.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#instants[middle] ?? 0) < wantedUs) low = middle + 1;
      else high = middle;
    }
    const instant = this.#instants[low];
    if (instant === undefined) return;
    this.#events.set(instant, [...(this.#events.get(instant) ?? []), event]);
  }

  /** Runs all events, also those that they schedule, and leaves the clock at the end. */
  async run(clock: SimulatedClock, endsMs: number): Promise<void> {
    for (const instant of this.#instants) {
      const due = this.#events.get(instant);
      if (due === undefined) continue;
      this.#events.delete(instant);
      this.#nowUs = instant;
      await clock.set(instant);
      for (const { run } of due.filter(({ turn }) => turn === 'before')) await run();
      const ofEach = Map.groupBy(
        due.filter(({ turn }) => turn === 'now'),
        ({ of }) => of,
      );
      const inTurn = async (events: Event[]): Promise<void> => {
        for (const { run } of events) await run();
      };
      await Promise.all([...ofEach.values()].map(inTurn));
    }
    this.#nowUs = endsMs * 1_000;
    await clock.set(this.#nowUs);
  }
}

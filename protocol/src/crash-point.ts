// Named points at which tests kill a program, as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by the program's own config.ts). Each program has its own list of points.

export class CrashPoints<Point extends string> {
  readonly #points: readonly Point[];
  #armed: { point: Point; passesLeft: number } | null = null;

  constructor(points: readonly Point[]) {
    this.#points = points;
  }

  /** Arms a point: `name`, or `name#n` for its nth pass. Throws for an unknown name. */
  arm(text: string): void {
    const [name, nth = '1'] = text.split('#');
    const point = this.#points.find((known) => known === name);
    if (point === undefined || !/^[1-9]\d{0,3}$/.test(nth))
      throw new Error(`BERTH_CRASH_AT: '${text}' is none of ${this.#points.join(', ')} (with #n for the nth pass)`);

    this.#armed = { point, passesLeft: Number(nth) };
  }

  /** Kills this process without cleanup if the point is armed and this is its pass. */
  pass(point: Point): void {
    if (this.#armed?.point === point && --this.#armed.passesLeft === 0) process.kill(process.pid, 'SIGKILL');
  }
}

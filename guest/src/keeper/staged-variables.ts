// Variables of a sandbox for a start that follows at once. In memory only, and taken once.
import { Refused } from '../access/refused.ts';

const KEPT_MS = 60_000;
/**
 * Starts of all kinds that can be under way at once, each with at most 64 KiB. Beyond it the oldest
 * is dropped.
 */
const MOST = 512;

export class StagedVariables {
  readonly #staged = new Map<string, { env: readonly string[]; timer: NodeJS.Timeout }>();

  stage(id: string, env: readonly string[]): void {
    this.#drop(id);
    const [oldest] = this.#staged.keys();
    if (oldest !== undefined && this.#staged.size >= MOST) this.#drop(oldest);
    this.#staged.set(id, { env, timer: setTimeout(() => this.#drop(id), KEPT_MS).unref() });
  }

  /** Throws {@link Refused} if they are gone: the program must not start without them. */
  take(id: string | undefined): readonly string[] {
    if (id === undefined) return [];
    const found = this.#staged.get(id);
    if (found === undefined) throw new Refused(503, 'the variables of this start are gone; repeat it');
    this.#drop(id);
    return found.env;
  }

  #drop(id: string): void {
    clearTimeout(this.#staged.get(id)?.timer);
    this.#staged.delete(id);
  }
}

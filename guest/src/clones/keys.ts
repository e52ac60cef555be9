// Key to which the secret of the next clone is sealed. Issued on demand, together with a keeper
// (keeper.ts) that waits for that clone alone.
//
//   (none) ──give──> waiting ──take──> (none): the clone owns the keeper
//                       └── timeout, forget ──> (none): the keeper is ended
import { CloneKeeper } from './keeper.ts';
import type { OomProtection } from '../machine/oom-protection.ts';

interface Waiting {
  starting: Promise<CloneKeeper>;
  keeper: CloneKeeper | undefined;
  orphaned: NodeJS.Timeout | undefined;
}

export class CloneKeys {
  readonly #waitMs: number;
  readonly #protection: OomProtection | undefined;
  #waiting: Waiting | undefined;

  /** @param waitMs lifetime of a key after it was last returned */
  constructor(waitMs: number, protection: OomProtection | undefined) {
    this.#waitMs = waitMs;
    this.#protection = protection;
  }

  /** Returns the same key until it is taken or forgotten. */
  async issue(): Promise<string> {
    const waiting = (this.#waiting ??= this.#start());
    const { key } = await waiting.starting;
    clearTimeout(waiting.orphaned);
    waiting.orphaned = setTimeout(() => void this.#discard(waiting), this.#waitMs);
    waiting.orphaned.unref();
    return key;
  }

  /** Hands its keeper to the caller, to end. undefined: another daemon's key, or used already. */
  take(key: string): CloneKeeper | undefined {
    const waiting = this.#waiting;
    if (waiting?.keeper?.key !== key) return undefined;

    this.#drop(waiting);
    return waiting.keeper;
  }

  /** Ends the waiting keeper, if any. */
  async forget(): Promise<void> {
    await this.#discard(this.#waiting);
  }

  #start(): Waiting {
    const starting = CloneKeeper.start(this.#protection);
    const waiting: Waiting = { starting, keeper: undefined, orphaned: undefined };
    starting.then(
      (keeper) => (waiting.keeper = keeper),
      () => this.#drop(waiting),
    );
    return waiting;
  }

  #drop(waiting: Waiting): void {
    clearTimeout(waiting.orphaned);
    if (this.#waiting === waiting) this.#waiting = undefined;
  }

  async #discard(waiting: Waiting | undefined): Promise<void> {
    if (waiting !== undefined && waiting === this.#waiting) {
      this.#drop(waiting);
      await waiting.starting.then(
        (keeper) => keeper.end(),
        () => undefined,
      );
    }
  }
}

// The key that the secret of the next clone is sealed to: given out on demand, with a keeper
// (clone-keeper.ts) that waits for that clone and for no other.
//
//   (none) ──give──> waiting ──take──> (none), the keeper is the clone's
//                       └── nobody came in time, forget ──> (none), the keeper is ended
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

  /** @param waitMs how long a key is good for after it was given out the last time */
  constructor(waitMs: number, protection: OomProtection | undefined) {
    this.#waitMs = waitMs;
    this.#protection = protection;
  }

  /** The same key until it is taken or forgotten. */
  async give(): Promise<string> {
    const waiting = (this.#waiting ??= this.#start());
    const { key } = await waiting.starting;
    clearTimeout(waiting.orphaned);
    waiting.orphaned = setTimeout(() => void this.#dismiss(waiting), this.#waitMs);
    waiting.orphaned.unref();
    return key;
  }

  /**
   * The keeper with the key, which is the caller's to end. None: the daemon that gave out the key
   * is no more, or another clone has used it.
   */
  take(key: string): CloneKeeper | undefined {
    const waiting = this.#waiting;
    if (waiting?.keeper?.key !== key) return undefined;

    this.#drop(waiting);
    return waiting.keeper;
  }

  /** Ends the keeper that waits, if there is one. */
  async forget(): Promise<void> {
    await this.#dismiss(this.#waiting);
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

  async #dismiss(waiting: Waiting | undefined): Promise<void> {
    if (waiting !== undefined && waiting === this.#waiting) {
      this.#drop(waiting);
      await waiting.starting.then(
        (keeper) => keeper.end(),
        () => undefined,
      );
    }
  }
}

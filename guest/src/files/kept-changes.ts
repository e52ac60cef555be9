// The last changes of a watch, by number. A later change of a path replaces its earlier ones, so
// that a file which is written all the time takes one place. Changes of folders stay: a removal
// concerns all below it.
import { FILE_WATCH_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestFileChange } from '@berth/protocol/calls/file-watch.ts';

interface Kept {
  change: GuestFileChange;
  bytes: number;
}

export class KeptChanges {
  /** By number, ascending. */
  readonly #kept = new Map<number, Kept>();
  /** Numbers of the changes of a path that the next one replaces. */
  readonly #replaceable = new Map<string, number[]>();
  #textBytes = 0;
  #last = 0;
  /** Number of the last change that is no longer kept although nothing replaces it. */
  #lost = 0;

  /** Number of the last change; 0: none yet. */
  get last(): number {
    return this.#last;
  }

  add(change: GuestFileChange): void {
    this.#last += 1;
    const { path } = change;
    const before = this.#replaceable.get(path) ?? [];
    const stays = (number: number): boolean =>
      change.change === 'changed' && this.#kept.get(number)?.change.change === 'created';
    before.filter((number) => !stays(number)).forEach((number) => this.#remove(number));
    const bytes = Buffer.byteLength(path);
    this.#kept.set(this.#last, { change, bytes });
    this.#textBytes += bytes;
    if (change.kind === 'directory') this.#replaceable.delete(path);
    else this.#replaceable.set(path, [...before.filter(stays), this.#last]);
    const { changes, textBytes } = FILE_WATCH_LIMITS.kept;
    for (const number of this.#kept.keys()) {
      if (this.#kept.size <= changes && this.#textBytes <= textBytes) return;
      this.#remove(number);
      this.#lost = number;
    }
  }

  /**
   * Changes after the number, as many as a response has, and the number of the last of them.
   * Undefined: some of them are no longer kept, or the number is of no change.
   */
  after(number: number): { changes: GuestFileChange[]; last: number } | undefined {
    if (number < this.#lost || number > this.#last) return undefined;
    const { response } = FILE_WATCH_LIMITS;
    const changes: GuestFileChange[] = [];
    let textBytes = 0;
    let last = number;
    for (const [at, { change, bytes }] of this.#kept) {
      if (at <= number) continue;
      if (changes.length === response.changes || textBytes >= response.textBytes) return { changes, last };
      changes.push(change);
      textBytes += bytes;
      last = at;
    }
    return { changes, last: this.#last };
  }

  #remove(number: number): void {
    const kept = this.#kept.get(number);
    if (kept === undefined) return;
    this.#kept.delete(number);
    this.#textBytes -= kept.bytes;
    const { path } = kept.change;
    const left = this.#replaceable.get(path)?.filter((one) => one !== number) ?? [];
    if (left.length > 0) this.#replaceable.set(path, left);
    else this.#replaceable.delete(path);
  }
}

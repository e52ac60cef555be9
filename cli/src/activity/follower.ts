// Polls the activity feed and returns every new entry exactly once.
// Entries are ordered by the start of their transaction. A slow transaction inserts its entry
// behind newer ones. Each poll therefore rereads an overlap and drops the entries already returned,
// by id.
import type { ActivityEntry, ActivityPage } from '@berth/sdk';

/** Longer than any transaction that writes an entry. */
const OVERLAP_MS = 120_000;

/** A page of the feed, newest first. @param after `nextCursor` of the page before */
export type ReadPage = (after: string | undefined) => Promise<ActivityPage>;

export class ActivityFollower {
  readonly #read: ReadPage;
  readonly #overlapMs: number;
  /** Ids of returned entries inside the overlap, with their times. */
  #seen = new Map<string, number>();
  #newestMs = -Infinity;

  constructor(read: ReadPage, overlapMs = OVERLAP_MS) {
    this.#read = read;
    this.#overlapMs = overlapMs;
  }

  /** Returns the latest entries, oldest first, and starts to follow. */
  async start(count: number): Promise<ActivityEntry[]> {
    const found = await this.#fetchNew(count);
    return found.slice(0, count).toReversed();
  }

  /** Returns entries since the last successful poll, oldest first. */
  async next(): Promise<ActivityEntry[]> {
    return (await this.#fetchNew(0)).toReversed();
  }

  /**
   * Reads back to the overlap, and further until `atLeast` unseen entries are found. Newest first.
   */
  async #fetchNew(atLeast: number): Promise<ActivityEntry[]> {
    const isFirst = this.#newestMs === -Infinity;
    const fresh: ActivityEntry[] = [];
    let oldestMs = this.#newestMs - this.#overlapMs;
    for (let after: string | undefined; ;) {
      const { activity, hasMore, nextCursor } = await this.#read(after);
      const [newest] = activity;
      if (isFirst && after === undefined && newest !== undefined) oldestMs = Date.parse(newest.at) - this.#overlapMs;
      fresh.push(
        ...activity.filter(({ id, at }) => Date.parse(at) >= (isFirst ? -Infinity : oldestMs) && !this.#seen.has(id)),
      );
      const last = activity.at(-1);
      const isFar = last === undefined || (Date.parse(last.at) < oldestMs && fresh.length >= atLeast);
      if (isFar || !hasMore || nextCursor === null) break;
      after = nextCursor;
    }
    this.#record(fresh);
    return fresh;
  }

  #record(fresh: readonly ActivityEntry[]): void {
    for (const { id, at } of fresh) {
      this.#seen.set(id, Date.parse(at));
      this.#newestMs = Math.max(this.#newestMs, Date.parse(at));
    }
    const oldestMs = this.#newestMs - this.#overlapMs;
    this.#seen = new Map([...this.#seen].filter(([, atMs]) => atMs >= oldestMs));
  }
}

// What is new in the activity feed since the last look: none twice, none left out.
//
// The feed is in the order of time, of the beginning of what wrote an entry; one that took longer
// comes to stand behind entries that were there before it. So each look reads back beyond the
// newest entry by more than anything takes, and knows by their ids what it has seen there.
import type { ActivityEntry, ActivityPage } from '@berth/sdk';

/** Longer than the service lets anything take that writes an entry. */
const OVERLAP_MS = 120_000;

/** A page of the feed, newest first. @param after `nextCursor` of the page before */
export type ReadPage = (after: string | undefined) => Promise<ActivityPage>;

export class ActivityFollower {
  readonly #read: ReadPage;
  readonly #overlapMs: number;
  /** Ids, and when they were, of what was seen and may be met again. */
  #seen = new Map<string, number>();
  #newestMs = -Infinity;

  constructor(read: ReadPage, overlapMs = OVERLAP_MS) {
    this.#read = read;
    this.#overlapMs = overlapMs;
  }

  /** The latest entries, the oldest of them first; from here on what comes is new. */
  async start(count: number): Promise<ActivityEntry[]> {
    const found = await this.#look(count);
    return found.slice(0, count).toReversed();
  }

  /**
   * What came since the last look, the oldest first. After a failure the next look makes up for it.
   */
  async next(): Promise<ActivityEntry[]> {
    return (await this.#look(0)).toReversed();
  }

  /**
   * Entries that were not seen, newest first: all of the overlap, and further ones until there are
   * so many.
   */
  async #look(atLeast: number): Promise<ActivityEntry[]> {
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
    this.#note(fresh);
    return fresh;
  }

  #note(fresh: readonly ActivityEntry[]): void {
    for (const { id, at } of fresh) {
      this.#seen.set(id, Date.parse(at));
      this.#newestMs = Math.max(this.#newestMs, Date.parse(at));
    }
    const oldestMs = this.#newestMs - this.#overlapMs;
    this.#seen = new Map([...this.#seen].filter(([, atMs]) => atMs >= oldestMs));
  }
}

// Activity feed of an org.
import type { Calls } from './calls/calls.ts';
import { HOLD_SECONDS } from './generated/limits.ts';
import type {
  ActivityEntry,
  ExportedActivityEntry,
  FollowActivityData,
  ListActivityData,
} from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';
import { held, whileHeld } from './transport/held.ts';
import { delay } from './transport/time.ts';

export type { ActivityEntry, ExportedActivityEntry };

/** Filters by kind, project or sandbox; `limit` is the page length. */
export type ActivityQuery = NonNullable<ListActivityData['query']>;

/** Filters by kinds, project or sandbox. */
export type FollowQuery = Omit<NonNullable<FollowActivityData['query']>, 'since'>;

export interface NewActivity {
  /** Oldest first. */
  activity: ActivityEntry[];
  /** Pass as `cursor` for the next request. */
  cursor: string;
  /** Whether there are more entries already. */
  hasMore: boolean;
}

/** Shortest time between two requests that returned no entry. */
const FOLLOW_PAUSE_MS = 1_000;

export interface ActivityPage {
  activity: ActivityEntry[];
  /** Pass as `after` for the next page. */
  nextCursor: string | null;
  hasMore: boolean;
}

export class Activity {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** One page, newest first. */
  async page(query: ActivityQuery = {}, { orgId, ...options }: OrgCallOptions = {}): Promise<ActivityPage> {
    const { raw, with: set } = this.#calls;
    return await raw.listActivity({ path: { orgId: await this.#calls.orgId(orgId) }, query, ...set(options) });
  }

  /** All entries, newest first, across pages: `for await (const entry of berth.activity.all())`. */
  async *all(query: ActivityQuery = {}, options: OrgCallOptions = {}): AsyncGenerator<ActivityEntry, void, undefined> {
    for (let after: string | undefined; ;) {
      const page = await this.page({ ...query, ...(after === undefined ? {} : { after }) }, options);
      yield* page.activity;
      if (!page.hasMore || page.nextCursor === null) return;
      after = page.nextCursor;
    }
  }

  /**
   * Entries committed after a cursor, oldest first, each once and with no gap. Without a cursor:
   * no entry, and the cursor of this moment. `waitSeconds`, at most 25: held until there is one.
   */
  async since(
    cursor: string | undefined,
    query: FollowQuery = {},
    { orgId, waitSeconds, ...options }: OrgCallOptions & { waitSeconds?: number | undefined } = {},
  ): Promise<NewActivity> {
    const { raw, with: set } = this.#calls;
    const path = { orgId: await this.#calls.orgId(orgId) };
    const since = cursor === undefined ? {} : { since: cursor };
    const settings = { ...held(waitSeconds), ...set(whileHeld(waitSeconds, options)) };
    return await raw.followActivity({ path, query: { ...query, ...since }, ...settings });
  }

  /**
   * Entries as they are committed, each once and with no gap, from now on or from a cursor of
   * {@link Activity.since}. Ends with the signal's reason.
   */
  async *follow(
    { cursor, ...query }: FollowQuery & { cursor?: string } = {},
    options: OrgCallOptions = {},
  ): AsyncGenerator<ActivityEntry, never, undefined> {
    let place = cursor ?? (await this.since(undefined, query, options)).cursor;
    for (;;) {
      const startedMs = performance.now();
      const found = await this.since(place, query, { ...options, waitSeconds: HOLD_SECONDS.max });
      yield* found.activity;
      place = found.cursor;
      // The service holds no more requests of this credential.
      const pauseMs = startedMs + FOLLOW_PAUSE_MS - performance.now();
      if (found.activity.length === 0 && pauseMs > 0)
        await delay(pauseMs, options.signal ?? new AbortController().signal);
    }
  }

  /**
   * Entries behind a cursor, or all, oldest first. To continue later, keep the `cursor` of the last
   * entry. Entries of the last two minutes come with a later export.
   */
  async *export(
    after?: string,
    { orgId, ...options }: OrgCallOptions = {},
  ): AsyncGenerator<ExportedActivityEntry, void, undefined> {
    const { raw, with: set } = this.#calls;
    const path = { orgId: await this.#calls.orgId(orgId) };
    for (let cursor = after; ;) {
      const query = cursor === undefined ? {} : { after: cursor };
      const entries = await raw.exportActivity({ path, query, ...set(options) });
      yield* entries;
      const last = entries.at(-1);
      if (last === undefined) return;
      cursor = last.cursor;
    }
  }
}

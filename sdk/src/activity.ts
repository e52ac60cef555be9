// Activity feed of an org.
import type { Calls } from './calls.ts';
import type { ActivityEntry, ExportedActivityEntry, ListActivityData } from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { ActivityEntry, ExportedActivityEntry };

/** Filters by kind, project or sandbox; `limit` is the page length. */
export type ActivityQuery = NonNullable<ListActivityData['query']>;

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

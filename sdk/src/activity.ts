// Activity feed of an org.
import type { Calls } from './calls.ts';
import type { ActivityEntry, ListActivityData } from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { ActivityEntry };

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
}

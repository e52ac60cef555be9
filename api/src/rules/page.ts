// Pagination: cursors, and the page fields of requests and responses. Pure; store/database/pages.ts
// holds the SQL.
// A cursor is a position in the list's order, so the next page starts there regardless of inserts
// and deletes. A cursor grants no access: the access check comes first.
import { LIST_LIMIT } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import { invalidField } from './coded-error.ts';

const ID = /^[\w-]{1,100}$/;
/** Within the range of a Postgres bigint. */
const NUMBER = /^\d{1,18}$/;
const NUMBERS = /^\d{1,18}-\d{1,18}$/;

/** The paginated lists, with the format of the tie-breaker of each. */
const TIES = {
  activeSandboxes: ID,
  activity: NUMBER,
  activityExport: NUMBER,
  activityFollow: NUMBERS,
  agentSessions: ID,
  agentTokens: ID,
  apiKeys: ID,
  hosts: ID,
  hostSandboxes: ID,
  invitations: ID,
  members: ID,
  orgAgentTokens: ID,
  previews: ID,
  projects: ID,
  sandboxes: ID,
  signIns: ID,
} as const;
const A_PAGE = 'the nextCursor of an earlier page of this list';
const SOURCES: { readonly [list in PagedList]?: string } = {
  activityExport: 'the cursor of an exported entry',
  activityFollow: 'the cursor of an earlier response',
};
export type PagedList = keyof typeof TIES;

/** Position of an entry in its list. */
export interface Place {
  /** Microseconds since 1970, the precision of the database's order. */
  atMicroseconds: number;
  /** Orders entries of the same instant: an id or a sequence number. */
  tie: string;
}

/** A page: `limit` entries after the position, or from the start. */
export interface PageRequest {
  limit: number;
  after: Place | null;
}

/** Rows of a page, with the position of the last row if more rows follow. */
export interface Slice<Row> {
  rows: Row[];
  next: Place | null;
}

/**
 * Fields beside the list in the response; empty for a request without pagination (spec: the lists'
 * shapes).
 */
export interface PageFields {
  nextCursor?: string | null;
  hasMore?: boolean;
}

export function writeCursor(list: PagedList, place: Place): string {
  return Buffer.from(`${list}.${place.atMicroseconds}.${place.tie}`).toString('base64url');
}

/** Throws `invalid_request` for text that {@link writeCursor} did not write for this list. */
export function readCursor(list: PagedList, cursor: string, field = 'query.after'): Place {
  const parts = /^(\w+)\.(\d{1,16})\.([\w-]+)$/.exec(Buffer.from(cursor, 'base64url').toString());
  const place = { atMicroseconds: Number(parts?.[2]), tie: parts?.[3] ?? '' };
  // Compare the round trip: base64url decoding is lenient, and numbers may have leading zeros.
  const isOwn =
    Number.isSafeInteger(place.atMicroseconds) && TIES[list].test(place.tie) && writeCursor(list, place) === cursor;
  if (!isOwn) throw invalidField(field, `must be ${SOURCES[list] ?? A_PAGE}`);
  return place;
}

/** A page of a list that always comes in pages. */
export interface CursorPage<Row> {
  rows: Row[];
  nextCursor: string | null;
}

export async function readOnePage<Row>(
  list: PagedList,
  { limit, after }: { limit: number; after?: string | undefined },
  select: (page: PageRequest) => Promise<Slice<Row>>,
): Promise<CursorPage<Row>> {
  const { rows, next } = await select({ limit, after: after === undefined ? null : readCursor(list, after) });
  return { rows, nextCursor: next && writeCursor(list, next) };
}

/** The requested page; null: the whole list. `after` without `limit` uses the maximum page size. */
export function readPageQuery(list: PagedList, { limit, after }: PageQuery): PageRequest | null {
  if (limit === undefined && after === undefined) return null;
  return { limit: limit ?? LIST_LIMIT.max, after: after === undefined ? null : readCursor(list, after) };
}

/** Reads a list as requested: whole and without page fields, or one page with them. */
export async function readInPages<Row>(
  list: PagedList,
  query: PageQuery,
  select: (page: PageRequest | null) => Promise<Slice<Row>>,
): Promise<{ rows: Row[]; fields: PageFields }> {
  const page = readPageQuery(list, query);
  const { rows, next } = await select(page);
  return { rows, fields: page === null ? {} : { nextCursor: next && writeCursor(list, next), hasMore: next !== null } };
}

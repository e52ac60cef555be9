// Pages of lists: a cursor's text, and what a query with `limit` or `after` asks for and is
// answered. Pure; the SQL is in store/pages.ts. A cursor is a place in the list's order, so a page
// goes on after it whatever came or went meanwhile. It opens nothing: access is decided first.
import { LIST_LIMIT } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import { CodedError } from './coded-error.ts';

const ID = /^[\w-]{1,100}$/;
/** Within what Postgres holds in a bigint. */
const NUMBER = /^\d{1,18}$/;

/** The lists that are read in pages, and the form of what orders their entries of one instant. */
const TIES = {
  activity: NUMBER,
  agentTokens: ID,
  apiKeys: ID,
  invitations: ID,
  members: ID,
  previews: ID,
  projects: ID,
  sandboxes: ID,
} as const;
export type PagedList = keyof typeof TIES;

/** Where an entry stands in its list. */
export interface Place {
  /** Since 1970, as exact as the database orders by. */
  atMicroseconds: number;
  /** Orders entries of one instant: an id, or a running number. */
  tie: string;
}

/** One page: `limit` entries after the place, or from the beginning. */
export interface PageRequest {
  limit: number;
  after: Place | null;
}

/** Rows of a list, with the place of the last of them when more follow. */
export interface Slice<Row> {
  rows: Row[];
  next: Place | null;
}

/**
 * What stands beside the list in the answer; nothing where no page was asked for (spec: the lists'
 * shapes).
 */
export interface PageFields {
  nextCursor?: string | null;
  hasMore?: boolean;
}

export function writeCursor(list: PagedList, place: Place): string {
  return Buffer.from(`${list}.${place.atMicroseconds}.${place.tie}`).toString('base64url');
}

/** Throws `invalid_request` for anything that {@link writeCursor} did not write for this list. */
export function readCursor(list: PagedList, cursor: string): Place {
  const parts = /^(\w+)\.(\d{1,16})\.([\w-]+)$/.exec(Buffer.from(cursor, 'base64url').toString());
  const place = { atMicroseconds: Number(parts?.[2]), tie: parts?.[3] ?? '' };
  // Written again it must be the same: base64url is read leniently, and leading zeros are a number
  // too.
  const isOwn =
    Number.isSafeInteger(place.atMicroseconds) && TIES[list].test(place.tie) && writeCursor(list, place) === cursor;
  if (!isOwn)
    throw new CodedError('invalid_request', 'query.after must be the nextCursor of an earlier page of this very list');
  return place;
}

/**
 * The page that a query asks for; null: the whole list. With `after` alone, a page is as long as
 * any may be.
 */
export function readPageQuery(list: PagedList, { limit, after }: PageQuery): PageRequest | null {
  if (limit === undefined && after === undefined) return null;
  return { limit: limit ?? LIST_LIMIT.max, after: after === undefined ? null : readCursor(list, after) };
}

/**
 * Reads a list as the query asks: whole and without fields beside it, or one page of it with them.
 */
export async function readInPages<Row>(
  list: PagedList,
  query: PageQuery,
  select: (page: PageRequest | null) => Promise<Slice<Row>>,
): Promise<{ rows: Row[]; fields: PageFields }> {
  const page = readPageQuery(list, query);
  const { rows, next } = await select(page);
  return { rows, fields: page === null ? {} : { nextCursor: next && writeCursor(list, next), hasMore: next !== null } };
}

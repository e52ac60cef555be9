// Lists of the test server, whole or by page.
import { Refusal } from './refusal.ts';
import type { TestCall } from './request.ts';

export function newestFirst<T extends { createdAt: string }>(all: readonly T[]): T[] {
  return [...all].reverse().toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
}

/** Returns the whole list, or the requested page. */
export function paged<T>(
  name: string,
  all: readonly T[],
  query: TestCall['query'],
  idOf: (one: T) => string = (one) => (one as { id: string }).id,
): Record<string, unknown> {
  const { limit, after } = query;
  if (limit === undefined && after === undefined) return { [name]: all };
  const begin = after === undefined ? 0 : all.findIndex((one) => idOf(one) === after) + 1;
  if (after !== undefined && begin === 0)
    throw new Refusal('invalid_request', 'query.after must be the nextCursor of a page of this list');
  const page = all.slice(begin, begin + ((limit as number | undefined) ?? all.length));
  const hasMore = begin + page.length < all.length;
  const last = page.at(-1);
  return { [name]: page, nextCursor: hasMore && last !== undefined ? idOf(last) : null, hasMore };
}
